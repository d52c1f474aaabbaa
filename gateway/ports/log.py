"""How a table's log is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gateway.domain.location import Location


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file directly below a table's ``_delta_log/``."""

    name: str
    size: int
    modified_at: datetime


class LogReader(Protocol):
    """Reads a table's ``_delta_log/`` and nothing else."""

    async def list_log(self, table: Location, *, start: str) -> Sequence[LogFile]:
        """Return the files named ``start`` or sorting after it, by name; empty if there is no log."""

    async def read_log(self, table: Location, name: str) -> bytes:
        """Return a log file's content; raise ``NotFound`` when it is gone."""
