"""Calls of a provider's HTTP API: one request, one bounded answer, no redirect, no cookie, no proxy."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from gateway.errors import Unavailable

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10, connect=5)
_MOST_BYTES: Final = 4 << 20
# Longer than any provider asks for, short enough for a timedelta.
_MOST_WAIT: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    # Sent as it is: a key that holds ``%2F`` stays one segment.
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    body: bytes = field(default=b"", repr=False)
    # How long the provider asks not to be called, where it says so.
    retry_after: timedelta | None = None

    def fields(self) -> Mapping[str, object]:
        """Return the body's JSON object, empty when it is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


Call = Callable[[Request], Awaitable[Reply]]


@asynccontextmanager
async def open_http(ca_file: str | None = None) -> AsyncIterator[Call]:
    """Open a client that raises ``Unavailable`` when there is no answer; a status is an answer."""
    trust = await asyncio.to_thread(trusting, ca_file)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=_TIMEOUT,
    ) as session:

        async def call(request: Request) -> Reply:
            try:
                return await _send(session, request)
            except (aiohttp.ClientError, TimeoutError, OSError) as exc:
                raise Unavailable("the storage's provider does not answer; try again later") from exc

        yield call


def trusting(ca_file: str | None) -> ssl.SSLContext:
    """Return a context that trusts the file's certificates besides the system's."""
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    return context


def check_endpoint(text: str) -> str:
    """Return an address without its last slash; raise ``ValueError`` for one that would show secrets."""
    parts = urlsplit(text)
    if not parts.hostname or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("an endpoint is an address such as https://storage.example.com")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname)):
        raise ValueError("an endpoint that is not on this machine needs https")
    return text.rstrip("/")


async def _send(session: aiohttp.ClientSession, request: Request) -> Reply:
    url = URL(request.url, encoded=True)
    # A redirect would take the bearer token to a host that the settings do not name.
    async with session.request(
        request.method, url, headers=request.headers, data=request.body or None, allow_redirects=False
    ) as response:
        body = bytearray()
        async for chunk in response.content.iter_chunked(1 << 16):
            body += chunk
            if len(body) >= _MOST_BYTES:
                break
        wait = _seconds(response.headers.get("Retry-After", ""))
        return Reply(status=response.status, body=bytes(body), retry_after=wait)


def _seconds(text: str) -> timedelta | None:
    return timedelta(seconds=min(int(text), _MOST_WAIT)) if text.isascii() and text.isdigit() else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
