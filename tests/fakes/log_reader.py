"""A log reader over a local directory that counts, waits and fails as a test tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from gateway.domain.location import Location
from gateway.domain.log import DIRECTORY, HINT
from gateway.errors import GatewayError, NotFound
from gateway.ports import LogFile


class FakeLogReader:
    """Implements ``LogReader``; a file in ``gone`` is listed and cannot be read."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self.read: list[str] = []
        self.gone: set[str] = set()
        # Left out of the next listing.
        self.missed: set[str] = set()
        self.failure: GatewayError | None = None
        self.before_read: Callable[[str], None] = lambda _: None
        # Cleared, it holds every listing back.
        self.may_list = asyncio.Event()
        self.may_list.set()
        # Cleared, it holds every reading back but that of the hint.
        self.may_read = asyncio.Event()
        self.may_read.set()

    async def list_log(self, table: Location, *, start: str) -> Sequence[LogFile]:
        self.listed.append(start)
        await self.may_list.wait()
        if self.failure is not None:
            raise self.failure
        log = _log_of(table)
        files = sorted(log.iterdir()) if log.is_dir() else []
        missed, self.missed = self.missed, set()
        return [_to_log_file(file) for file in files if file.name >= start and file.name not in missed]

    async def read_log(self, table: Location, name: str) -> bytes:
        self.read.append(name)
        self.before_read(name)
        if name != HINT:
            await self.may_read.wait()
        file = _log_of(table) / name
        if name in self.gone or not file.is_file():
            raise NotFound(f"{name} is gone")
        return file.read_bytes()


def _log_of(table: Location) -> Path:
    return Path(f"/{table.path}") / DIRECTORY


def _to_log_file(file: Path) -> LogFile:
    status = file.stat()
    return LogFile(file.name, status.st_size, datetime.fromtimestamp(status.st_mtime, tz=UTC))
