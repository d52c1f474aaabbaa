"""The log of one table, and what reads it."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.location import Location
from gateway.ports import LogReader


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLog:
    location: Location
    reader: LogReader
