"""Which storages a configuration asks for: those of its entries, or one for each place its tables need."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from gateway.config.checks.storage import Coverage
from gateway.config.schema import Config, StorageConfig, TableConfig
from gateway.domain.location import Location, parse_location

# Who serves a scheme in a file without ``storages``, by its standard credential chain.
DEFAULT_VENDORS: Final = {"file": "local", "s3": "aws", "abfss": "azure", "gs": "gcp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStorage:
    """A storage to open."""

    name: str
    prefix: Location
    vendor: str
    options: Mapping[str, object] = field(default_factory=dict, repr=False)
    # Nobody has said that credentials may be issued here.
    url_only: bool = False
    credential_life: timedelta = timedelta(hours=1)
    allow_root: bool = False
    # Part of the plan: what was made for the storage before is not served by the one that takes its place.
    revoked_at: datetime | None = None


class LocalRoots:
    """The directories of the storages on the local file system, by the storages' names."""

    def __init__(self, config: Config) -> None:
        self._roots = _local_roots(config)

    def __call__(self, storage: str) -> Path | None:
        return self._roots.get(storage)

    async def reload(self, config: Config) -> None:
        self._roots = await asyncio.to_thread(_local_roots, config)


def plan_storages(config: Config) -> tuple[PlannedStorage, ...]:
    """Return the storages of a loaded configuration."""
    if config.storages is None:
        return tuple(_default_storages(config))
    return tuple(
        PlannedStorage(
            name=entry.name,
            prefix=parse_location(entry.prefix),
            vendor=entry.vendor,
            options=entry.options,
            credential_life=entry.credential_life or config.credentials.life,
            allow_root=entry.allow_root,
            revoked_at=entry.revoked_at,
        )
        for entry in config.storages
    )


def covering_storages(config: Config, places: Iterable[str]) -> tuple[StorageConfig, ...]:
    """Return the entries that cover some places of a loaded configuration."""
    entries = config.storages or ()
    coverage = Coverage(entries)
    numbers = {coverage.find(parse_location(place)) for place in places if place}
    return tuple(entry for number, entry in enumerate(entries) if number in numbers)


def tables_of(config: Config) -> Iterator[tuple[str, TableConfig]]:
    """Return each table with its path in the file."""
    for i, share in enumerate(config.shares):
        for j, schema in enumerate(share.schemas):
            for k, table in enumerate(schema.tables):
                yield f"shares[{i}].schemas[{j}].tables[{k}]", table


def locations_of(path: str, table: TableConfig) -> Iterator[tuple[str, Location]]:
    """Return each location of a table with its path in the file."""
    yield f"{path}.location", parse_location(table.location)
    for number, text in enumerate(table.auxiliary_locations):
        yield f"{path}.auxiliaryLocations[{number}]", parse_location(text)


def _default_storages(config: Config) -> Iterator[PlannedStorage]:
    seen = set()
    for path, table in tables_of(config):
        for _, location in locations_of(path, table):
            prefix = _default_prefix(location)
            if prefix not in seen:
                seen.add(prefix)
                yield PlannedStorage(
                    name=_default_name(prefix),
                    prefix=prefix,
                    vendor=DEFAULT_VENDORS[prefix.scheme],
                    url_only=True,
                )


def _default_prefix(location: Location) -> Location:
    if location.scheme == "file":
        # The table's own directory: the path that leads to it may have links, which none below a prefix may.
        return location
    return parse_location(f"{location.scheme}://{location.authority}")


def _default_name(prefix: Location) -> str:
    # It stands in URLs: the same in every process and after a restart, and it tells nothing of the path.
    identity = "\n".join(prefix.identity)
    return f"default-{hashlib.sha256(identity.encode()).hexdigest()[:20]}"


def _local_roots(config: Config) -> dict[str, Path]:
    return {
        storage.name: Path("/", storage.prefix.path)
        for storage in plan_storages(config)
        if storage.prefix.scheme == "file"
    }
