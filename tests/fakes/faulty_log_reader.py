"""A log reader over a dictionary, whose listings and readings go wrong as a test tells it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from gateway.domain.location import Location, parse_location
from gateway.errors import GatewayError, NotFound
from gateway.ports import LogFile
from gateway.services.snapshot.log.table_log import TableLog

STARTED_AT = datetime(2025, 1, 1, tzinfo=UTC)


class FaultyLogReader:
    """Implements ``LogReader``; each file is a minute younger than the one that was put before it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.modified_at: dict[str, datetime] = {}
        self.listed: list[str] = []
        self.read: list[str] = []
        # What each of the next listings does to what it would give.
        self.lies: list[Callable[[list[LogFile]], Iterable[LogFile]]] = []
        # Raised in place of the next readings of a file, one after the other.
        self.failures: dict[str, list[GatewayError]] = {}
        # Raised by every listing and reading.
        self.outage: GatewayError | None = None
        # Only so many bytes of a file arrive.
        self.cut: dict[str, int] = {}
        self.before_read: Callable[[str], None] = lambda _: None
        # How many readings were under way at once, at most.
        self.most_at_once = 0
        self._reading = 0

    @property
    def log(self) -> TableLog:
        return TableLog(location=parse_location("s3://lake/t"), reader=self)

    def put(self, name: str, content: bytes, modified_at: datetime | None = None) -> None:
        later = STARTED_AT + timedelta(minutes=len(self.modified_at))
        self.files[name] = content
        self.modified_at[name] = modified_at or later

    def remove(self, *names: str) -> None:
        for name in names:
            del self.files[name]

    async def list_log(self, table: Location, *, start: str) -> Sequence[LogFile]:
        self.listed.append(start)
        if self.outage:
            raise self.outage
        found = [
            LogFile(name, len(content), self.modified_at[name])
            for name, content in sorted(self.files.items())
            if name >= start and "/" not in name
        ]
        return list(self.lies.pop(0)(found)) if self.lies else found

    async def read_log(self, table: Location, name: str) -> bytes:
        self.read.append(name)
        self.before_read(name)
        self._reading += 1
        self.most_at_once = max(self.most_at_once, self._reading)
        await asyncio.sleep(0)
        self._reading -= 1
        if self.outage or self.failures.get(name):
            raise self.outage or self.failures[name].pop(0)
        if name not in self.files:
            raise NotFound(f"the table's log has no file {name}")
        return self.files[name][: self.cut.get(name)]

    def times_read(self) -> Counter[str]:
        return Counter(self.read)
