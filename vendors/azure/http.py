"""Plain HTTP calls to Azure, as a port and over aiohttp."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

import aiohttp
from yarl import URL

from gateway.errors import Unavailable

# The version of the storage API that is asked for, and the one that a SAS is checked by.
API_VERSION: Final = "2023-11-03"

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10, connect=5)
# Keys are small; a page of a listing is the largest answer.
_MOST_BYTES: Final = 16 * 1024 * 1024
_CHUNK: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    # A SAS may stand in the query.
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    # By their names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)


class Http(Protocol):
    async def send(self, request: Request) -> Response:
        """Return the answer, whatever its status; raise ``Unavailable`` when there is none."""


class AioHttp:
    """Follows no redirect, since a request carries the storage's own token."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def send(self, request: Request) -> Response:
        try:
            async with self._session.request(
                request.method,
                # As it is: a name is percent-encoded once, by whoever made the address.
                URL(request.url, encoded=True),
                headers={"x-ms-version": API_VERSION, **request.headers},
                data=request.body,
                allow_redirects=False,
            ) as answer:
                body = await _read(answer)
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return Response(status=answer.status, headers=headers, body=body)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            # The error's own text may hold the address, and with it a SAS.
            raise Unavailable(f"Azure does not answer ({type(exc).__name__})") from None


@asynccontextmanager
async def open_http(ca_file: str | None) -> AsyncIterator[AioHttp]:
    """Open a session that trusts the system's authorities, and those of the file."""
    async with open_session(ca_file, auto_decompress=True) as session:
        yield AioHttp(session)


@asynccontextmanager
async def open_session(ca_file: str | None, *, auto_decompress: bool) -> AsyncIterator[aiohttp.ClientSession]:
    context = await asyncio.to_thread(_trust, ca_file)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=auto_decompress,
        timeout=_TIMEOUT,
    ) as session:
        yield session


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK):
        body += chunk
        # Whoever reads a large file to see whether it can is not interested in the rest.
        if len(body) >= _MOST_BYTES:
            break
    return bytes(body)


def _trust(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context
