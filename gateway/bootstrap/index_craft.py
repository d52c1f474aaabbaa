"""The craft of indexes, over the tables of a configuration and the logs that its storages read."""

from __future__ import annotations

from datetime import datetime

from gateway.adapters.state import state_location
from gateway.bootstrap.craft_parts import CraftParts
from gateway.config.schema import Config
from gateway.domain.index import LogPlan
from gateway.domain.location import Location, parse_location
from gateway.errors import Unsupported
from gateway.ports import Storages
from gateway.services.snapshot.log.plan import plan_log, plan_steps
from gateway.services.snapshot.log.table_log import TableLog
from gateway.work.craft import Craft
from gateway.work.index import IndexCraft, IndexedTable, IndexHome, LogPlanner


def build_index_craft(parts: CraftParts) -> Craft:
    logs = _Logs(parts.storages)
    return IndexCraft(
        home=IndexHome(state=parts.state, location=state_location(parts.config)),
        places=parts.places,
        planner=LogPlanner(whole=logs.plan_whole, since=logs.plan_since),
        tables=_tables(parts.config),
        clock=parts.clock,
    )


class _Logs:
    """Reads the logs of tables as their storages do."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages

    async def plan_whole(self, location: Location) -> LogPlan:
        return await plan_log(self._log(location))

    async def plan_since(
        self, location: Location, version: int, size: int, modified_at: datetime
    ) -> LogPlan | None:
        return await plan_steps(self._log(location), version, size, modified_at)

    def _log(self, location: Location) -> TableLog:
        storage = self._storages.find(location)
        if storage is None or storage.reader is None:
            raise Unsupported(f"{location} lies in no storage that this gateway can read")
        return TableLog(location=location, reader=storage.reader)


def _tables(config: Config) -> list[IndexedTable]:
    return [
        IndexedTable(
            name=f"{share.name}.{schema.name}.{table.name}",
            location=parse_location(table.location),
            every=table.index_every,
        )
        for share in config.shares
        for schema in share.schemas
        for table in schema.tables
    ]
