"""Storages: which prefix belongs to which."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.config.checks.unique import Unique
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config
from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument


def check_storage(config: Config, report: Report) -> None:
    names = Unique(report, "is the name of {first} already")
    prefixes = Unique(report, "is the prefix of {first} already; a location belongs to one storage")
    for number, storage in enumerate(config.storages or ()):
        path: Path = ("storages", number)
        names.add(storage.name, (*path, "name"), storage.name)
        prefix = find_location(storage.prefix, (*path, "prefix"), report)
        if prefix is not None:
            prefixes.add(prefix, (*path, "prefix"), storage.prefix)


def find_location(text: str, path: Path, report: Report) -> Location | None:
    """Return the location, or report why it is none."""
    try:
        return parse_location(text)
    except InvalidArgument as exc:
        report.fault(path, exc.message)
        return None


class Coverage:
    """Finds out whether a storage covers a location, in time that does not grow with the storages."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._prefixes = {location.identity for prefix in prefixes if (location := _parse(prefix))}

    def covers(self, location: Location) -> bool:
        scheme, authority, path = location.identity
        while (scheme, authority, path) not in self._prefixes:
            if not path:
                return False
            path = path.rpartition("/")[0]
        return True


def _parse(text: str) -> Location | None:
    try:
        return parse_location(text)
    except InvalidArgument:
        return None
