"""The shares of a configuration, checked and sorted into an index."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from gateway.adapters.catalog_index import ShareIndex, Sorted, sort_items
from gateway.config.faults import Fault
from gateway.config.schema import SchemaConfig, ShareConfig, TableConfig
from gateway.domain.location import Location, parse_location
from gateway.domain.name import TableName, check_schema_name, check_share_name, check_table_name, fold
from gateway.domain.principal import ALL_SHARES
from gateway.domain.table import AccessMode, Schema, Share, Table
from gateway.errors import InvalidArgument

# Ids of what the configuration gives none: the same for the same name, on every replica and for ever.
_NAMESPACE: Final = uuid.UUID("6f1f3f0e-8a55-5c0b-9d0e-2f3a4f6c7b19")
_DEFAULT_MODES: Final = (AccessMode.URL,)

_Named = TypeVar("_Named", ShareConfig, SchemaConfig, TableConfig)


class ShareReader:
    """Reads shares, and keeps every fault that it finds on the way."""

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = faults

    def read(self, configs: Iterable[ShareConfig]) -> dict[str, ShareIndex]:
        """Return the shares by folded name."""
        shares: dict[str, ShareIndex] = {}
        ids: dict[str, str] = {}
        for path, key, config in self._named(configs, "shares", check_share_name):
            if key == ALL_SHARES:
                self._fault(
                    f"{path}.name", f"{ALL_SHARES!r} stands for all shares and cannot be the name of one"
                )
            share = Share(
                name=config.name,
                id=config.id or _new_id("share", key),
                display_name=config.display_name,
                comment=config.comment,
                properties=dict(config.properties),
            )
            self._check_id(share.id, path, ids)
            shares[key] = self._read_schemas(share, config, path)
        return shares

    def _read_schemas(self, share: Share, config: ShareConfig, path: str) -> ShareIndex:
        schemas: dict[str, Schema] = {}
        tables: dict[str, Sorted[str, Table]] = {}
        every: dict[tuple[str, str], Table] = {}
        ids: dict[str, str] = {}
        for schema_path, key, schema in self._named(config.schemas, f"{path}.schemas", check_schema_name):
            schemas[key] = Schema(name=schema.name, share=share.name)
            found = dict(self._read_tables(share, config, schema, schema_path, ids))
            tables[key] = sort_items(found)
            every |= {(key, table_key): table for table_key, table in found.items()}
        return ShareIndex(
            share=share, schemas=sort_items(schemas), tables=tables, all_tables=sort_items(every)
        )

    def _read_tables(
        self, share: Share, config: ShareConfig, schema: SchemaConfig, path: str, ids: dict[str, str]
    ) -> Iterator[tuple[str, Table]]:
        prefix = f"{fold(share.name)}.{fold(schema.name)}"
        for table_path, key, table in self._named(schema.tables, f"{path}.tables", check_table_name):
            location = self._location(table.location, f"{table_path}.location")
            if location is None:
                continue
            table_id = table.id or _new_id("table", f"{prefix}.{key}")
            self._check_id(table_id, table_path, ids)
            yield (
                key,
                Table(
                    name=TableName(share.name, schema.name, table.name),
                    id=table_id,
                    share_id=share.id,
                    location=location,
                    auxiliary_locations=self._auxiliary_locations(table, table_path),
                    access_modes=self._access_modes(table, config, table_path),
                    history_shared=table.history_shared,
                    start_version=table.start_version,
                ),
            )

    def _named(
        self, configs: Iterable[_Named], path: str, check: Callable[[str], str]
    ) -> Iterator[tuple[str, str, _Named]]:
        """Return the path, folded name and entry of those whose names are legal and their own."""
        first: dict[str, str] = {}
        for number, config in enumerate(configs):
            place = f"{path}[{number}]"
            try:
                key = fold(check(config.name))
            except InvalidArgument as exc:
                self._fault(f"{place}.name", exc.message)
                continue
            if key in first:
                self._fault(f"{place}.name", f"has the same name as {first[key]}, as case does not count")
                continue
            first[key] = place
            yield place, key, config

    def _check_id(self, new: str, path: str, seen: dict[str, str]) -> None:
        if new in seen:
            self._fault(f"{path}.id", f"is the id of {seen[new]} too")
        seen[new] = path

    def _location(self, text: str, path: str) -> Location | None:
        try:
            return parse_location(text)
        except InvalidArgument as exc:
            self._fault(path, exc.message)
            return None

    def _auxiliary_locations(self, table: TableConfig, path: str) -> tuple[Location, ...]:
        if not table.auxiliary_locations:
            return ()
        parsed = (
            self._location(text, f"{path}.auxiliaryLocations[{number}]")
            for number, text in enumerate(table.auxiliary_locations)
        )
        return tuple(location for location in parsed if location is not None)

    def _access_modes(self, table: TableConfig, share: ShareConfig, path: str) -> tuple[AccessMode, ...]:
        own = table.access_modes
        modes = own if own is not None else share.access_modes
        if modes is None:
            return _DEFAULT_MODES
        # A credential for the directory opens every version and column there is.
        offered = tuple(
            mode for mode in dict.fromkeys(modes) if mode is not AccessMode.DIR or _shares_all_history(table)
        )
        if not offered or (own is not None and len(offered) < len(set(own))):
            self._fault(
                f"{path}.accessModes",
                "names url or dir; dir takes historyShared: true and no startVersion: a credential for the "
                "table's directory opens all of its history",
            )
        return offered

    def _fault(self, path: str, message: str) -> None:
        self._faults.append(Fault(path=path, message=message))


def _shares_all_history(table: TableConfig) -> bool:
    return table.history_shared and table.start_version == 0


def _new_id(kind: str, name: str) -> str:
    # A slash, which no name contains: the ids of shares and tables never meet.
    return str(uuid.uuid5(_NAMESPACE, f"{kind}/{name}"))
