"""Tables whose directories lie in one another: a credential for the outer one opens the inner one too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.config.path import Path
from gateway.config.report import Report
from gateway.domain.location import Location

_ENOUGH: Final = 2

_Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """A table with its name and where it is."""

    path: Path
    share: int
    # Share, schema and table, for people.
    name: str
    location: Location
    auxiliary_locations: tuple[Location, ...]
    is_dir: bool

    @property
    def locations(self) -> tuple[Location, ...]:
        return (self.location, *self.auxiliary_locations)

    def is_strange_to(self, other: Placed) -> bool:
        """Tell whether they are two tables that are not shared with the same recipients anyway."""
        return self.share != other.share and self.location != other.location


def warn_of_overlaps(tables: Iterable[Placed], report: Report) -> None:
    """Warn of tables with dir access whose directories lie around or in those of another share."""
    placed = list(tables)
    every, dirs = _index(placed), _index(table for table in placed if table.is_dir)
    for inner in placed:
        for location in inner.locations:
            for place in upwards(location):
                for outer in [table for table in dirs.get(place, ()) if table.is_strange_to(inner)]:
                    message = f"opens {inner.name} of another share too, which lies below it"
                    _warn(outer, f"{message}: move one of them, or share the outer one by url only", report)
                    # Once is enough, and keeps the work small where one directory holds all the others.
                    dirs[place].remove(outer)
    _warn_of_parts(placed, every, report)


def upwards(location: Location) -> Iterator[_Identity]:
    """Return the place itself, and then each one above it."""
    scheme, authority, path = location.identity
    yield scheme, authority, path
    while path:
        path = path.rpartition("/")[0]
        yield scheme, authority, path


def _warn_of_parts(placed: Iterable[Placed], every: dict[_Identity, list[Placed]], report: Report) -> None:
    parts: dict[Placed, list[Placed]] = {}
    for inner in placed:
        if inner.is_dir and (outer := _find_around(inner, every)):
            parts.setdefault(outer, []).append(inner)
    for outer, (first, *others) in parts.items():
        more = f" (and so does one for {len(others):,} more tables)" if others else ""
        message = (
            f"opens a part of {outer.name} of another share, which it lies below{more}: "
            "move one of them, or share the inner one by url only"
        )
        _warn(first, message, report)


def _find_around(inner: Placed, every: dict[_Identity, list[Placed]]) -> Placed | None:
    for location in inner.locations:
        for place in upwards(location):
            if place == location.identity:
                continue
            for outer in every.get(place, ()):
                if outer.is_strange_to(inner):
                    return outer
    return None


def _warn(table: Placed, message: str, report: Report) -> None:
    report.warn((*table.path, "accessModes"), f"a dir credential for {table.name} {message}")


def _index(tables: Iterable[Placed]) -> dict[_Identity, list[Placed]]:
    """Return the tables by their places: of one that is shared many times, two shares stand for all."""
    found: dict[_Identity, list[Placed]] = {}
    shares: dict[tuple[_Identity, _Identity], set[int]] = {}
    for table in tables:
        for place in {location.identity for location in table.locations}:
            known = shares.setdefault((place, table.location.identity), set())
            if table.share not in known and len(known) < _ENOUGH:
                known.add(table.share)
                found.setdefault(place, []).append(table)
    return found
