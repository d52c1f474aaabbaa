"""Calls of a provider's HTTP API: one request, one bounded answer, no redirect, no cookie, no proxy."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from gateway.errors import Unavailable

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10, connect=5)
# A page of a listing is the largest answer that anybody reads to its end.
_MOST_BYTES: Final = 16 << 20
_CHUNK: Final = 64 << 10
_THROTTLING: Final = frozenset({429, 503})
_SHORTEST_WAIT: Final = timedelta(seconds=1)
# Who is told to wait longer than this asks again all the same: it may have been said in error.
_LONGEST_WAIT: Final = timedelta(minutes=1)
# More than the longest wait has; Python refuses to read a number of thousands of digits.
_MOST_DIGITS: Final = 9

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    # Sent as it is: a key that holds ``%2F`` stays one segment. A SAS may stand in the query.
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    # By their names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def is_throttling(self) -> bool:
        """Tell whether the provider asks to be called less often."""
        return self.status in _THROTTLING

    @property
    def retry_after(self) -> timedelta:
        """Return how long to leave the provider alone."""
        return retry_after(self.headers)

    def fields(self) -> Mapping[str, object]:
        """Return the body's JSON object, empty when it is none."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


Call = Callable[[Request], Awaitable[Reply]]


@asynccontextmanager
async def open_http(ca_file: str | None = None) -> AsyncIterator[Call]:
    """Open a client that raises ``Unavailable`` when there is no answer; a status is an answer."""
    async with open_session(ca_file) as session:

        async def call(request: Request) -> Reply:
            if session.closed:
                # A reload has closed the storage while somebody waited to ask it.
                raise Unavailable("the storage is being replaced; try again")
            try:
                return await _send(session, request)
            except (aiohttp.ClientError, TimeoutError, OSError) as exc:
                host, reason = urlsplit(request.url).hostname, type(exc).__name__
                log.warning("the provider at %s does not answer: %s", host, reason)
                # Not from it: the error's own text may hold the address, and with it a SAS.
                raise Unavailable("the storage's provider does not answer; try again later") from None

        yield call


@asynccontextmanager
async def open_session(
    ca_file: str | None, *, auto_decompress: bool = True
) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session that trusts the system's authorities, and those of the file."""
    trust = await asyncio.to_thread(trusting, ca_file)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=auto_decompress,
        timeout=_TIMEOUT,
    ) as session:
        yield session


def trusting(ca_file: str | None) -> ssl.SSLContext:
    """Return a context that trusts the file's certificates besides the system's."""
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context


def check_endpoint(text: str) -> str:
    """Return an address without its last slash; raise ``ValueError`` for one that would show secrets."""
    parts = urlsplit(text)
    is_bare = "@" not in parts.netloc and "?" not in text and "#" not in text
    if parts.scheme not in {"http", "https"} or not parts.hostname or not is_bare:
        raise ValueError("an endpoint is an address such as https://storage.example.com")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("an endpoint that is not on this machine needs https")
    return text.rstrip("/")


def is_loopback(host: str | None) -> bool:
    """Tell whether a host is this machine, by its name or number alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def retry_after(headers: Mapping[str, str]) -> timedelta:
    """Return how long an answer asks its caller to wait: within bounds, the shortest where it does not say.

    The names of the headers are in lower case.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        wait = timedelta(seconds=int(text)) if len(text) <= _MOST_DIGITS else _LONGEST_WAIT
    else:
        # By the provider's own clock: it set both times, and ours may differ.
        until, now = http_date(text), http_date(headers.get("date", ""))
        wait = until - now if until and now else _SHORTEST_WAIT
    return min(max(wait, _SHORTEST_WAIT), _LONGEST_WAIT)


def http_date(text: str) -> datetime | None:
    """Return the time that a header holds, or None."""
    try:
        found = parsedate_to_datetime(text)
    except (IndexError, OverflowError, TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None


async def _send(session: aiohttp.ClientSession, request: Request) -> Reply:
    # A redirect would take the bearer token to a host that the settings do not name.
    async with session.request(
        request.method,
        URL(request.url, encoded=True),
        headers=request.headers,
        data=request.body or None,
        allow_redirects=False,
    ) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(status=response.status, headers=headers, body=await _read(response))


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        body += chunk
        # Whoever reads a large file to see whether it can is not interested in the rest.
        if len(body) >= _MOST_BYTES:
            break
    return bytes(body)
