"""The shares of a configuration, sorted into an index."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from gateway.adapters.catalog_index import ShareIndex, Sorted, sort_items
from gateway.config.checks.storage import location_or_none
from gateway.config.faults import Fault
from gateway.config.schema import SchemaConfig, ShareConfig, TableConfig, ViewConfig
from gateway.domain.location import Location, parse_location
from gateway.domain.name import TableName, fold
from gateway.domain.table import AccessMode, Schema, Share, Table
from gateway.domain.view import Source, View
from gateway.errors import InvalidArgument

if TYPE_CHECKING:
    from gateway.config.views.compiling import Compiled

# Ids of what the configuration gives none: the same for the same name, on every replica and for ever.
_NAMESPACE: Final = uuid.UUID("6f1f3f0e-8a55-5c0b-9d0e-2f3a4f6c7b19")
_DEFAULT_MODES: Final = (AccessMode.URL,)


class ShareReader:
    """Reads shares whose names ``load`` has checked, and keeps every fault that it finds on the way."""

    def __init__(
        self,
        faults: list[Fault],
        freshness: timedelta = timedelta(0),
        views: Mapping[tuple[str, str, str], Compiled] | None = None,
    ) -> None:
        self._faults = faults
        # Of tables that do not say.
        self._freshness = freshness
        # The queries of views, by folded names.
        self._compiled = views or {}
        self._sources: dict[tuple[str, str, str], Source] = {}

    def read(self, configs: Iterable[ShareConfig]) -> dict[str, ShareIndex]:
        """Return the shares by folded name."""
        configs = tuple(configs)
        self._sources = self._find_sources(configs)
        return {
            fold(config.name): self._read_share(config, f"shares[{number}]")
            for number, config in enumerate(configs)
        }

    def _read_share(self, config: ShareConfig, path: str) -> ShareIndex:
        share = Share(
            name=config.name,
            id=config.id or _new_id("share", fold(config.name)),
            display_name=config.display_name,
            comment=config.comment,
            properties=dict(config.properties),
        )
        schemas: dict[str, Schema] = {}
        tables: dict[str, Sorted[str, Table]] = {}
        every: dict[tuple[str, str], Table] = {}
        for number, schema in enumerate(config.schemas):
            key = fold(schema.name)
            place = f"{path}.schemas[{number}]"
            found = dict(self._read_tables(share, config, schema, place))
            found |= self._read_views(share, config, schema, place)
            schemas[key] = Schema(name=schema.name, share=share.name)
            tables[key] = sort_items(found)
            every |= {(key, table_key): table for table_key, table in found.items()}
        return ShareIndex(
            share=share, schemas=sort_items(schemas), tables=tables, all_tables=sort_items(every)
        )

    def _read_tables(
        self, share: Share, config: ShareConfig, schema: SchemaConfig, path: str
    ) -> Iterator[tuple[str, Table]]:
        prefix = f"{fold(share.name)}.{fold(schema.name)}"
        for number, table in enumerate(schema.tables):
            key, place = fold(table.name), f"{path}.tables[{number}]"
            location = self._find_location(table.location, f"{place}.location")
            if location is None:
                continue
            yield (
                key,
                Table(
                    name=TableName(share.name, schema.name, table.name),
                    id=table.id or _new_id("table", f"{prefix}.{key}"),
                    share_id=share.id,
                    location=location,
                    auxiliary_locations=tuple(self._auxiliary_locations(table, place)),
                    access_modes=_access_modes(table, config),
                    history_shared=table.history_shared,
                    start_version=table.start_version,
                    r2_credentials=table.r2_credentials,
                    freshness=self._freshness if table.freshness is None else table.freshness,
                ),
            )

    def _read_views(
        self, share: Share, config: ShareConfig, schema: SchemaConfig, path: str
    ) -> Iterator[tuple[str, Table]]:
        for number, entry in enumerate(schema.views):
            name = TableName(share.name, schema.name, entry.name)
            root = self._find_location(entry.location, f"{path}.views[{number}].location")
            compiled = self._compiled.get(name.key)
            # What has no query was reported, or stands on a table that was.
            if root is None or compiled is None or not self._sources.keys() >= set(compiled.sources):
                continue
            yield (
                name.key[2],
                Table(
                    name=name,
                    id=entry.id or _new_id("table", ".".join(name.key)),
                    share_id=share.id,
                    location=root,
                    access_modes=entry.access_modes or config.access_modes or _DEFAULT_MODES,
                    freshness=self._freshness,
                    view=self._view(entry, compiled, root),
                    holds_shown_only=True,
                ),
            )

    def _view(self, entry: ViewConfig, compiled: Compiled, root: Location) -> View:
        return View(
            query=compiled.query,
            sources=tuple(self._sources[key] for key in compiled.sources),
            properties=compiled.properties,
            is_appendable=compiled.is_appendable,
            uses_clock=compiled.uses_clock,
            root=root,
            max_staleness=entry.max_staleness,
            refresh_every=entry.refresh_every,
        )

    def _find_sources(self, configs: Iterable[ShareConfig]) -> dict[tuple[str, str, str], Source]:
        wanted = {key for compiled in self._compiled.values() for key in compiled.sources}
        if not wanted:
            return {}
        names = [
            (TableName(share.name, schema.name, table.name), table)
            for share in configs
            for schema in share.schemas
            for table in schema.tables
        ]
        return {
            name.key: Source(
                name=name,
                location=location,
                auxiliary_locations=tuple(filter(None, map(location_or_none, table.auxiliary_locations))),
            )
            for name, table in names
            if name.key in wanted and (location := location_or_none(table.location)) is not None
        }

    def _auxiliary_locations(self, table: TableConfig, path: str) -> Iterator[Location]:
        for number, text in enumerate(table.auxiliary_locations):
            location = self._find_location(text, f"{path}.auxiliaryLocations[{number}]")
            if location is not None:
                yield location

    def _find_location(self, text: str, path: str) -> Location | None:
        try:
            return parse_location(text)
        except InvalidArgument as exc:
            self._faults.append(Fault(path=path, message=exc.message))
            return None


def _access_modes(table: TableConfig, share: ShareConfig) -> tuple[AccessMode, ...]:
    modes = table.access_modes if table.access_modes is not None else share.access_modes
    if modes is None:
        return _DEFAULT_MODES
    # A credential for the directory opens every version there is.
    shares_all_history = table.history_shared and table.start_version == 0
    return tuple(mode for mode in modes if mode is not AccessMode.DIR or shares_all_history)


def _new_id(kind: str, name: str) -> str:
    # A slash, which no name contains: the ids of shares and tables never meet.
    return str(uuid.uuid5(_NAMESPACE, f"{kind}/{name}"))
