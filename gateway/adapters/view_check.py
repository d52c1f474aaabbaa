"""Whether the columns that views name are there: asked of the tables that they read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.adapters.table_columns import read_columns
from gateway.config.checks.storage import location_or_none
from gateway.config.faults import Fault
from gateway.config.path import format_path
from gateway.config.report import Report
from gateway.config.schema import Config
from gateway.config.views.compiling import Views
from gateway.domain.location import Location
from gateway.domain.name import TableName
from gateway.ports import Storages


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCheck:
    faults: tuple[Fault, ...] = ()
    # Of tables that could not be read: whether they have the columns will show.
    warnings: tuple[str, ...] = ()


async def check_view_columns(config: Config, storages: Storages) -> ViewCheck:
    """Return what is wrong with the columns of a configuration's views, which are sound otherwise."""
    report = Report()
    # In threads: queries are long to read, and requests are served meanwhile.
    views = await asyncio.to_thread(Views, config, report)
    tables = _places(config, views.sources())
    found = await read_columns(tables, storages)
    await asyncio.to_thread(views.check_columns, found.columns)
    unread = [(name, found.unread[name.key]) for name, _ in tables if name.key in found.unread]
    warnings = tuple(
        f"{format_path(views.readers(name))}: the columns of {name} are not checked: {words}"
        for name, words in unread
    )
    return ViewCheck(faults=report.faults({}), warnings=warnings)


def _places(config: Config, names: Sequence[TableName]) -> list[tuple[TableName, Location]]:
    wanted = {name.key: name for name in names}
    found = []
    for share in config.shares:
        for schema in share.schemas:
            for table in schema.tables:
                name = wanted.get(TableName(share.name, schema.name, table.name).key)
                location = location_or_none(table.location) if name is not None else None
                if name is not None and location is not None:
                    found.append((name, location))
    return found
