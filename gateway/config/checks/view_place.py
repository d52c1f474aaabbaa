"""Where views are made: in directories that hold nothing else, and that nothing else opens."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from gateway.config.checks.overlap import Placed, upwards
from gateway.config.checks.storage import location_or_none
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config
from gateway.domain.location import Location

_Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedView:
    path: Path
    # Share, schema and view, for people.
    name: str
    location: Location


def check_view_places(
    config: Config, views: Iterable[PlacedView], tables: Iterable[Placed], report: Report
) -> None:
    """Report views whose directories lie in, at or around those of tables, of other views or of our own."""
    placed = list(views)
    if not placed:
        return
    others = [(location, f"the table {table.name}") for table in tables for location in table.locations]
    others += [(view.location, f"the view {view.name}") for view in placed]
    others += _own_places(config)
    held: dict[_Identity, list[str]] = {}
    for location, name in others:
        held.setdefault(location.identity, []).append(name)
    roots = {view.location.identity for view in placed}
    inside: dict[_Identity, str] = {}
    for location, name in others:
        for place in list(upwards(location))[1:]:
            if place in roots:
                inside.setdefault(place, name)
    for view in placed:
        if other := _find_other(view, held, inside):
            message = f"must be a directory of its own, where nothing else lies: here is {other}"
            report.fault((*view.path, "location"), message, view.location.text)


def _find_other(view: PlacedView, held: dict[_Identity, list[str]], inside: dict[_Identity, str]) -> str:
    own = f"the view {view.name}"
    for place in upwards(view.location):
        # Views of one name have been reported as such.
        names = [name for name in held.get(place, ()) if place != view.location.identity or name != own]
        if names:
            return names[0]
    return inside.get(view.location.identity, "")


def _own_places(config: Config) -> list[tuple[Location, str]]:
    places = {
        # With the keys, the state and the audit log, as far as these have no places of their own.
        "stateDir": _absolute(config.state_dir),
        "audit.directory": _absolute(config.audit.directory),
        "state.location": config.state.location,
        "usage.landing": config.usage.landing,
        "usage.location": config.usage.location,
    }
    found = [(location_or_none(text), name) for name, text in places.items() if text]
    return [(location, name) for location, name in found if location is not None]


def _absolute(directory: str) -> str:
    return os.path.abspath(directory) if directory else ""  # noqa: PTH100 -- links are left as they are
