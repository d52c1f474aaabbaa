"""Where the tables and views of a configuration are and how they are offered, as far as can be understood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.config.broken import Broken
from gateway.config.checks.storage import location_or_none
from gateway.config.path import Path
from gateway.config.schema import Config, ShareConfig, TableConfig, ViewConfig
from gateway.domain.location import Location
from gateway.domain.table import AccessMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One of a table's locations, or where a view is made."""

    path: Path
    # Share, schema and table, for people.
    table: str
    location: Location
    modes: tuple[AccessMode, ...]


def find_placed(config: Config, broken: Broken) -> Iterator[Placed]:
    """Return each location of each table and view, without those that are made up or are none."""
    for i, share in enumerate(config.shares):
        above: Path = ("shares", i)
        for path, schema, table in _entries(share, above):
            if not broken.spares((*above, "accessModes"), (*path, "accessModes")):
                continue
            name = f"{share.name}.{schema}.{table.name}"
            for place, location in _locations(path, table, broken):
                yield Placed(path=place, table=name, location=location, modes=_modes(share, table))


def _entries(share: ShareConfig, above: Path) -> Iterator[tuple[Path, str, TableConfig | ViewConfig]]:
    for number, schema in enumerate(share.schemas):
        path = (*above, "schemas", number)
        for index, table in enumerate(schema.tables):
            yield (*path, "tables", index), schema.name, table
        for index, view in enumerate(schema.views):
            yield (*path, "views", index), schema.name, view


def _modes(share: ShareConfig, table: TableConfig | ViewConfig) -> tuple[AccessMode, ...]:
    return table.access_modes or share.access_modes or (AccessMode.URL,)


def _locations(
    path: Path, table: TableConfig | ViewConfig, broken: Broken
) -> Iterator[tuple[Path, Location]]:
    texts = [((*path, "location"), table.location)]
    for number, text in enumerate(table.auxiliary_locations if isinstance(table, TableConfig) else ()):
        texts.append(((*path, "auxiliaryLocations", number), text))
    for place, text in texts:
        location = location_or_none(text) if broken.spares(place) else None
        if location is not None:
            yield place, location
