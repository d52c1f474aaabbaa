"""Views: what a query over shared tables shows to whoever asks, and where that has been made."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gateway.domain.location import Location
from gateway.domain.name import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A shared table that a view reads."""

    name: TableName
    location: Location
    # Other places that its log may name files in.
    auxiliary_locations: tuple[Location, ...] = ()

    @property
    def locations(self) -> tuple[Location, ...]:
        return (self.location, *self.auxiliary_locations)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A query that was checked. Other views that it was written over are parts of it already."""

    # Spark SQL, over the sources by the names ``source_0``, ``source_1``, …; what it asks of a recipient are
    # the named parameters ``:property_0``, ``:property_1``, …
    query: str
    sources: tuple[Source, ...]
    # Properties of a recipient; empty where everybody is shown the same.
    properties: tuple[str, ...] = ()
    # Whether rows that are added to its only source add rows to it, and change none.
    is_appendable: bool
    # Whether it shows something else as time passes, though no source has changed; follows from the query.
    uses_clock: bool = False
    # Where what it shows is made: a directory below for each materialisation.
    root: Location
    # How old what is shown may be before a request asks for a refresh; None: of any age.
    max_staleness: timedelta | None = None
    refresh_every: timedelta | None = None

    @property
    def is_personal(self) -> bool:
        return bool(self.properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """A view as one recipient, or everybody, is shown it: all that the rows depend on besides the sources."""

    view: View
    name: TableName
    # Empty where everybody is shown the same.
    recipient: str = ""
    # One for each of the view's properties; None where the recipient has none of that name.
    values: tuple[str | None, ...] = field(default=(), repr=False)

    @property
    def fingerprint(self) -> str:
        """Return what changes with the query, its sources, its place, the recipient and its properties."""
        parts = [
            self.view.query,
            [_identities(source) for source in self.view.sources],
            list(self.view.root.identity),
            list(self.name.key),
            self.recipient,
            list(self.values),
        ]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()[:32]


def _identities(source: Source) -> list[object]:
    # Added only where there are any: what has none is the same as it was before there could be.
    others = [list(location.identity) for location in source.auxiliary_locations]
    return [*source.location.identity, *([others] if others else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialisation:
    """What a showing looked like when it was last made. Its directory holds nothing else."""

    fingerprint: str
    location: Location
    # The version of the table there.
    version: int
    # What it shows is not older than this.
    refreshed_at: datetime
