"""A place that a key of the configuration names, for what we keep ourselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.adapters.storage_check import FindVendor
from gateway.config.faults import ConfigError, Fault
from gateway.domain.location import Location
from gateway.ports import StateStore, Storage, StorageSettings


@asynccontextmanager
async def open_directory(location: Location, *, key: str, find: FindVendor) -> AsyncIterator[StateStore]:
    """Give what is kept in a directory, which needs nobody's identity, and so no storage entry."""
    vendor = await asyncio.to_thread(find, "local")
    async with vendor.open(StorageSettings(name=key, prefix=location, public_url="")) as storage:
        yield open_below(storage, location, key=key)


def open_below(storage: Storage, location: Location, *, key: str) -> StateStore:
    """Return what is kept below a location of a storage; raise ``ConfigError`` where nothing can be."""
    if storage.open_state is None:
        message = f"the storage {storage.name!r} cannot hold what we keep: choose another, or a directory"
        raise ConfigError([Fault(path=key, message=message)])
    return storage.open_state(location)
