"""Who could read a place at a moment, from the ledger of grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl

from gateway.commands.usage_report.tables import Columns, DataFile, UsageReader, counts, texts, times
from gateway.domain.location import Location

_LEDGER: Final[Columns] = {
    **times("valid_from", "valid_until"),
    **texts("recipient", "actor", "mode", "opens", "location", "place", "share", "schema", "table"),
    **texts("credential_id", "remote", "request_id", "event_id"),
    **counts("files"),
}
# Statistics have milliseconds, cut off.
_CUT_OFF: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessQuestion:
    place: Location
    at: datetime


async def who_could_read(reader: UsageReader, question: AccessQuestion) -> Sequence[Mapping[str, Any]]:
    """Return the grants that were in force and opened the place, or a directory that it lies in."""
    ledger = await reader.read("credential_ledger", _LEDGER, lambda file: _may_hold(file, question.at))
    place = _spelled(question.place)
    covers = (pl.col("place") == place) | pl.lit(place).str.starts_with(
        pl.concat_str(pl.col("place").str.strip_chars_end("/"), pl.lit("/"))
    )
    in_force = (pl.col("valid_from") <= question.at) & (pl.col("valid_until") > question.at)
    found = ledger.filter(covers & in_force)
    return found.sort(["recipient", "valid_from", "event_id"]).drop("place").to_dicts()


def _may_hold(file: DataFile, at: datetime) -> bool:
    if file.day is not None and file.day > at.date():
        return False
    latest = file.greatest.get("valid_until")
    return latest is None or datetime.fromisoformat(latest) + _CUT_OFF >= at


def _spelled(place: Location) -> str:
    """Return the spelling that the ledger has."""
    return f"{place.scheme}://{place.authority}/{place.path}".removesuffix("/")
