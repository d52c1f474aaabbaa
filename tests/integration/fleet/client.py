"""A recipient that asks as the official clients do, and tells trouble that passes from trouble that stays."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from ssl import SSLContext
from typing import Any

import aiohttp

from tests.integration.fleet.judge import Judge
from tests.integration.fleet.lake import LONG_TABLE, SCHEMA, SHARE_OF, TABLE, Lake

_CAPABILITIES = {
    "delta-sharing-capabilities": "responseformat=parquet;includeendstreamaction=true",
    # Compressed it would be so little that all of it is on its way at once.
    "Accept-Encoding": "identity",
}
# Longer than `services.timeout`: a call that comes to its deadline is answered before.
ATTEMPT_SECONDS = 120.0
# What the gateway says when a call of its own has come to its deadline.
_AT_DEADLINE = "took longer than the gateway allows"
_REQUEST_ID = "X-Request-Id"


@dataclass
class Trouble(Exception):
    """No answer, or one that says to come back."""

    # What a table of counts calls it.
    reason: str
    is_passing: bool
    # Whether the answer said when to come back.
    says_when: bool = False
    request_id: str = ""


class Client:
    """One recipient at one address. Each of its operations either ends well or raises."""

    def __init__(self, base_url: str, lake: Lake, recipient: str, session: aiohttp.ClientSession) -> None:
        self._base_url = base_url
        self._lake = lake
        self._recipient = recipient
        self._session = session
        self._judge = Judge(lake)
        self._headers = {"Authorization": f"Bearer {lake.tokens[recipient]}"}
        self._share = f"/shares/{SHARE_OF[recipient]}"
        self._tables = f"{self._share}/schemas/{SCHEMA}/tables"
        # Each twice in a row: what one replica has minted the other finds in Redis.
        self._directories = cycle(name for name in lake.directories_of(recipient) for _ in range(2))
        # Of the last answer with files.
        self._url = ""
        # Answers with files that have begun, and not yet ended.
        self.reading = 0
        # When each attempt that was answered began, and how long it waited for the first byte, in seconds.
        self.waits: list[tuple[float, float]] = []

    @property
    def has_url(self) -> bool:
        """True once a file can be read without a query before it."""
        return bool(self._url)

    async def shares(self) -> None:
        async with self._ask("GET", "/shares") as response:
            self._judge.shares(self._recipient, await response.json())

    async def tables(self) -> None:
        async with self._ask("GET", f"{self._share}/all-tables") as response:
            self._judge.tables(self._recipient, await response.json())

    async def metadata(self) -> None:
        least = self._lake.table_of(self._recipient).committed
        async with self._ask("GET", f"{self._tables}/{TABLE}/metadata", _CAPABILITIES) as response:
            lines = (await response.read()).splitlines()
            self._judge.metadata(self._recipient, response.headers, lines[:2], least)

    async def query(self) -> None:
        self._url = await self._query(TABLE, pause=0)

    async def slow_query(self) -> None:
        """Take the answer so slowly that it is still under way seconds later."""
        await self._query(LONG_TABLE, pause=0.03)

    async def file(self) -> None:
        if not self._url:
            await self.query()
        # Other answers come meanwhile.
        url = self._url
        async with self._answer("GET", url) as response:
            self._judge.file(self._recipient, url, await response.read())

    async def credential(self) -> None:
        table = next(self._directories)
        path = f"{self._tables}/{table}/temporary-table-credentials"
        async with self._ask("POST", path, json={}) as response:
            self._judge.credential(self._recipient, table, await response.json())

    async def _query(self, name: str, *, pause: float) -> str:
        """Read all files of a table, and return one of their URLs."""
        table = self._lake.table_of(self._recipient, name)
        least = table.committed
        async with self._ask("POST", f"{self._tables}/{name}/query", _CAPABILITIES, json={}) as response:
            *lines, last = (await self._read(response, pause)).splitlines()
            _check_end(last)
            return self._judge.files(table, response.headers, lines, least)

    async def _read(self, response: aiohttp.ClientResponse, pause: float) -> bytes:
        pieces = []
        self.reading += 1
        try:
            async for piece in response.content.iter_chunked(256 * 1024):
                pieces.append(piece)
                await asyncio.sleep(pause)
        finally:
            self.reading -= 1
        return b"".join(pieces)

    @asynccontextmanager
    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        sent = {**self._headers, **(headers or {})}
        async with self._answer(method, f"{self._base_url}{path}", headers=sent, **options) as response:
            yield response

    @asynccontextmanager
    async def _answer(self, method: str, url: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        began_at = time.monotonic()
        async with self._session.request(method, url, **options) as response:
            waited = time.monotonic() - began_at
            try:
                await _check_status(response)
                self.waits.append((began_at, waited))
                yield response
            except Exception as exc:
                trouble = to_trouble(exc)
                if trouble is None:
                    raise
                trouble.request_id = response.headers.get(_REQUEST_ID, "")
                raise trouble from exc


def to_trouble(exc: Exception) -> Trouble | None:
    """Return what kept an attempt from its answer, or None for a fault of the test itself."""
    if isinstance(exc, Trouble):
        return exc
    if isinstance(exc, aiohttp.ClientPayloadError):
        return Trouble("cut off", is_passing=True)
    if isinstance(exc, TimeoutError):
        return Trouble("no answer in time", is_passing=True)
    if isinstance(exc, aiohttp.ClientConnectionError):
        return Trouble("connection lost", is_passing=True)
    return None


@asynccontextmanager
async def sessions(tls: SSLContext | None) -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=ATTEMPT_SECONDS)
    connector = aiohttp.TCPConnector(limit=0, ssl=tls or True)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield session


async def _check_status(response: aiohttp.ClientResponse) -> None:
    status = response.status
    if status != 200:
        # The official clients come back after these, and after no other.
        is_passing = status == 429 or status >= 500
        reason = _reason(status, await response.text())
        raise Trouble(reason, is_passing, says_when="Retry-After" in response.headers)


def _check_end(last: bytes) -> None:
    """A stream without its end, or that says what went wrong at it, is asked for anew."""
    action = json.loads(last).get("endStreamAction")
    if action is None:
        raise Trouble("without its end", is_passing=True)
    if "errorMessage" in action:
        reason = _reason(action["httpStatusErrorCode"], action["errorMessage"])
        raise Trouble(f"{reason} at its end", is_passing=True)


def _reason(status: int, message: str) -> str:
    """Return the status of an error, and whether it came no sooner than a deadline."""
    return f"{status} at a deadline" if _AT_DEADLINE in message else str(status)
