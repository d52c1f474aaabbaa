"""Shares, schemas and tables."""

from __future__ import annotations

from collections.abc import Callable

from gateway.config.checks.overlap import Placed, warn_of_overlaps
from gateway.config.checks.storage import Coverage, find_location
from gateway.config.checks.unique import Unique
from gateway.config.checks.view_place import PlacedView, check_view_places
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config, SchemaConfig, ShareConfig, TableConfig, ViewConfig
from gateway.domain.location import Location
from gateway.domain.name import check_schema_name, check_share_name, check_table_name, fold
from gateway.domain.principal import ALL_SHARES
from gateway.domain.table import AccessMode
from gateway.errors import InvalidArgument

_SAME_NAME = "is the name of {first} already (upper and lower case are the same); rename one"


def check_catalog(config: Config, report: Report) -> None:
    _Catalog(config, report).check()


class _Catalog:
    def __init__(self, config: Config, report: Report) -> None:
        self._config = config
        self._report = report
        # Prefixes that could not be read would make it look as if nothing covers their tables.
        is_known = config.storages is not None and report.is_intact(("storages",))
        self._storages = config.storages or ()
        self._coverage = Coverage(self._storages) if is_known else None
        self._share_ids = Unique(report, "is the id of {first} already")
        self._table_ids: dict[str, tuple[Location, Path]] = {}
        self._placed: list[Placed] = []
        self._views: list[PlacedView] = []

    def check(self) -> None:
        names = Unique(self._report, _SAME_NAME)
        for number, share in enumerate(self._config.shares):
            path: Path = ("shares", number)
            self._check_name(share.name, (*path, "name"), check_share_name, names)
            if share.name == ALL_SHARES:
                self._report.fault((*path, "name"), "must not be *, which stands for all shares", share.name)
            if share.id:
                self._share_ids.add(share.id, (*path, "id"), share.id)
            self._check_modes(share.access_modes, (*path, "accessModes"))
            self._check_schemas(share, path)
        warn_of_overlaps(self._placed, self._report)
        check_view_places(self._config, self._views, self._placed, self._report)

    def _check_schemas(self, share: ShareConfig, above: Path) -> None:
        names = Unique(self._report, _SAME_NAME)
        for number, schema in enumerate(share.schemas):
            path = (*above, "schemas", number)
            self._check_name(schema.name, (*path, "name"), check_schema_name, names)
            self._check_tables(share, schema, path)

    def _check_tables(self, share: ShareConfig, schema: SchemaConfig, above: Path) -> None:
        names = Unique(self._report, _SAME_NAME)
        for number, table in enumerate(schema.tables):
            path = (*above, "tables", number)
            self._check_name(table.name, (*path, "name"), check_table_name, names)
            self._check_modes(table.access_modes, (*path, "accessModes"))
            is_dir = AccessMode.DIR in (table.access_modes or share.access_modes or ())
            if is_dir:
                self._check_dir(table, path)
            self._check_locations(table, f"{share.name}.{schema.name}.{table.name}", path, is_dir=is_dir)
        for number, view in enumerate(schema.views):
            path = (*above, "views", number)
            self._check_name(view.name, (*path, "name"), check_table_name, names)
            self._check_modes(view.access_modes, (*path, "accessModes"))
            self._check_view(view, f"{share.name}.{schema.name}.{view.name}", path)

    def _check_view(self, view: ViewConfig, name: str, path: Path) -> None:
        location = self._check_location(view.location, (*path, "location"), is_dir=False)
        if location is None:
            return
        if self._config.storages is None:
            message = "needs an entry in storages that covers it: views are written there"
            self._report.fault((*path, "location"), message, view.location)
        elif location.is_root:
            message = "is the root of its bucket or container: name a directory below it, for this view alone"
            self._report.fault((*path, "location"), message, view.location)
        if view.id:
            self._check_id(view.id, location, (*path, "id"))
        self._views.append(PlacedView(path=path, name=name, location=location))

    def _check_locations(self, table: TableConfig, name: str, path: Path, *, is_dir: bool) -> None:
        location = self._check_location(table.location, (*path, "location"), is_dir=is_dir)
        if table.id and location is not None:
            self._check_id(table.id, location, (*path, "id"))
        others = [
            self._check_location(text, (*path, "auxiliaryLocations", index), is_dir=is_dir)
            for index, text in enumerate(table.auxiliary_locations)
        ]
        if location is not None:
            self._placed.append(
                Placed(
                    path=path,
                    # The share stands second in the path: shares[1].
                    share=int(path[1]),
                    name=name,
                    location=location,
                    auxiliary_locations=tuple(other for other in others if other is not None),
                    is_dir=is_dir,
                )
            )

    def _check_name(self, name: str, path: Path, rule: Callable[[str], str], names: Unique) -> None:
        try:
            names.add(fold(rule(name)), path, name)
        except InvalidArgument as exc:
            self._report.fault(path, exc.message)

    def _check_location(self, text: str, path: Path, *, is_dir: bool) -> Location | None:
        location = find_location(text, path, self._report)
        if location is None or self._coverage is None:
            return location
        number = self._coverage.find(location)
        if number is None:
            message = "is below no prefix of storages; add a storage for it, or correct it"
            self._report.fault(path, message, text)
        elif is_dir and location.is_root and not self._storages[number].allow_root:
            self._report.fault(
                path,
                "is the root of its bucket or container, all of which dir access would open: move the table "
                f"below it, or set storages[{number}].allowRoot: true",
                text,
            )
        return location

    def _check_id(self, table_id: str, location: Location, path: Path) -> None:
        # A table may be shared more than once, under one id.
        other, first = self._table_ids.setdefault(table_id, (location, path))
        if other != location:
            unique = Unique(self._report, "is the id of {first} already, which is another table")
            unique.add(table_id, first, table_id)
            unique.add(table_id, path, table_id)

    def _check_modes(self, modes: tuple[AccessMode, ...] | None, path: Path) -> None:
        if modes is not None and (not modes or len(set(modes)) < len(modes)):
            self._report.fault(path, "must name url, dir or both, each once", modes)

    def _check_dir(self, table: TableConfig, path: Path) -> None:
        if not table.history_shared or table.start_version:
            self._report.fault(
                (*path, "accessModes"),
                "dir access shows a table's whole history: set historyShared: true and startVersion: 0, "
                "or do not offer dir",
            )
        elif self._config.storages is None:
            self._report.fault(
                (*path, "accessModes"),
                "dir access needs an entry in storages that covers the table's location",
            )
