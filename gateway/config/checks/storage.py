"""Storages: which prefix belongs to which, and how long their credentials live."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from gateway.config.checks.unique import Unique
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config, StorageConfig
from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument

# What the clouds have in common: no less than AWS issues, no more than it issues to anybody.
_SHORTEST: Final = timedelta(minutes=15)
_LONGEST: Final = timedelta(hours=36)
# Clients ask again fifteen minutes before the end; with less than this left they do nothing else.
_COMFORTABLE: Final = timedelta(minutes=20)


def check_storage(config: Config, report: Report) -> None:
    names = Unique(report, "is the name of {first} already")
    prefixes = Unique(report, "is the prefix of {first} already; a location belongs to one storage")
    _check_life(config.credentials.life, ("credentials", "life"), report)
    for number, storage in enumerate(config.storages or ()):
        path: Path = ("storages", number)
        names.add(storage.name, (*path, "name"), storage.name)
        prefix = find_location(storage.prefix, (*path, "prefix"), report)
        if prefix is not None:
            prefixes.add(prefix, (*path, "prefix"), storage.prefix)
        if storage.credential_life is not None:
            _check_life(storage.credential_life, (*path, "credentialLife"), report)


def is_possible_life(life: timedelta) -> bool:
    """Tell whether there is a provider that issues credentials of that life."""
    return _SHORTEST <= life <= _LONGEST


def find_location(text: str, path: Path, report: Report) -> Location | None:
    """Return the location, or report why it is none."""
    try:
        return parse_location(text)
    except InvalidArgument as exc:
        report.fault(path, exc.message)
        return None


class Coverage:
    """Finds the storage that covers a location, in time that does not grow with the storages."""

    def __init__(self, entries: Sequence[StorageConfig]) -> None:
        self._entries = {
            prefix.identity: number
            for number, entry in enumerate(entries)
            if (prefix := location_or_none(entry.prefix)) is not None
        }

    def find(self, location: Location) -> int | None:
        """Return the number of the entry with the longest prefix that covers the location."""
        scheme, authority, path = location.identity
        while (number := self._entries.get((scheme, authority, path))) is None:
            if not path:
                return None
            path = path.rpartition("/")[0]
        return number


def _check_life(life: timedelta, path: Path, report: Report) -> None:
    if not is_possible_life(life):
        report.fault(path, "must be from 15m to 36h", _spelled(life))
    elif life < _COMFORTABLE:
        report.warn(
            path, "is so short that clients will ask for new credentials all the time; set 20m or more"
        )


def _spelled(span: timedelta) -> str:
    for name, unit in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("m", timedelta(minutes=1))):
        if span % unit == timedelta(0):
            return f"{span // unit}{name}"
    return f"{span.total_seconds():g}s"


def location_or_none(text: str) -> Location | None:
    """Return the location, or None where the text is none, which is reported elsewhere."""
    try:
        return parse_location(text)
    except InvalidArgument:
        return None
