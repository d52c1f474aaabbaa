"""Which tables have dir access, on which storages, and how a command opens one of these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from gateway.adapters.catalog_yaml import build_index
from gateway.adapters.storage_check import FindVendor
from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.adapters.vendors import find_vendor
from gateway.config.checks.storage import Coverage
from gateway.config.faults import ConfigError, Fault
from gateway.config.nearest import nearest
from gateway.config.schema import Config, StorageConfig
from gateway.domain.location import Location, parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.errors import GatewayError, Unavailable
from gateway.ports import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class DirLocation:
    """A location that credentials are issued for: a table's own, or an auxiliary one."""

    table: TableName
    location: Location
    # The storage's name.
    storage: str


def dir_locations(config: Config) -> Iterator[DirLocation]:
    """Return what credentials are issued for, by the catalog's own rules."""
    entries = config.storages or ()
    coverage = Coverage(entries)
    for table in build_index(config).tables.values():
        if AccessMode.DIR not in table.access_modes:
            continue
        for location in (table.location, *table.auxiliary_locations):
            number = coverage.find(location)
            if number is not None:
                yield DirLocation(table=table.name, location=location, storage=entries[number].name)


def choose_storages(config: Config, names: Sequence[str]) -> list[StorageConfig]:
    """Return the storages of these names, or all; raise ``ConfigError`` for a name that there is not."""
    entries = {entry.name: entry for entry in config.storages or ()}
    for name in names:
        if name not in entries:
            known = f"there are: {', '.join(entries)}" if entries else "the configuration names none"
            message = f"--storage: there is no storage {name!r}; {known}"
            raise ConfigError([Fault(path="", message=message, suggestion=nearest(name, entries))])
    return [entry for entry in entries.values() if not names or entry.name in names]


@asynccontextmanager
async def open_storage(
    config: Config, entry: StorageConfig, find: FindVendor = find_vendor
) -> AsyncIterator[Storage]:
    """Open one storage as vending does, but without a cache: what it issues is fresh."""
    # Alone, so that a fault of one, or of a table, does not keep a command from the others.
    alone = config.model_copy(update={"storages": (entry,), "shares": ()})
    process = StorageProcess(public_url=config.public_url)
    async with OpenStorages(alone, process, find=find) as storages:
        storage = storages.find(parse_location(entry.prefix))
        if storage is None:
            raise Unavailable(f"storage {entry.name} did not open")
        yield storage


def reason(exc: Exception) -> str:
    """Return why a storage could not be used, for the operator."""
    if isinstance(exc, ConfigError):
        return "; ".join(str(replace(fault, path=_below_the_storage(fault.path))) for fault in exc.faults)
    if isinstance(exc, GatewayError):
        return exc.message
    # An SDK's text may hold more than its kind.
    return f"{type(exc).__name__}, see its documentation or the log"


def _below_the_storage(path: str) -> str:
    # What comes before was counted in a configuration of this storage alone.
    return path.partition(".")[2]
