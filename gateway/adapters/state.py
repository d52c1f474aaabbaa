"""The state of a configuration: where it is, what opens it, and the proof that it keeps to conditions."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from gateway.adapters.place import open_below, open_directory
from gateway.adapters.storage_check import FindVendor
from gateway.adapters.vendors import find_vendor
from gateway.config.faults import ConfigError, Fault
from gateway.config.schema import Config
from gateway.domain.location import Location, parse_location
from gateway.errors import Unavailable, Unsupported
from gateway.ports import StateEntry, StateKey, StateStore, Storage, Storages

_SCRATCH: Final = "check"
_PATH: Final = "state.location"

T = TypeVar("T")

log = logging.getLogger(__name__)


def state_location(config: Config) -> Location:
    """Return where a loaded configuration has its state."""
    return parse_location(config.state.location or f"{config.state_dir}/state")


@asynccontextmanager
async def open_state(
    config: Config, storages: Storages, *, find: FindVendor = find_vendor
) -> AsyncIterator[ProvedState]:
    """Give the state of a configuration. Nothing is read or written before somebody does."""
    location = state_location(config)
    if location.scheme != "file":
        yield ProvedState(StorageState(storages, location))
        return
    async with open_directory(location, key=_PATH, find=find) as store:
        yield ProvedState(store)


class StorageState:
    """State below a location of a storage, whichever is open for it at the moment."""

    def __init__(self, storages: Storages, location: Location) -> None:
        self._storages = storages
        self._location = location
        self._opened: tuple[Storage, StateStore] | None = None

    async def get(self, key: str) -> StateEntry | None:
        return await self._store().get(key)

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return await self._store().get_range(key, start, length)

    async def create(self, key: str, content: bytes) -> str | None:
        return await self._store().create(key, content)

    async def replace(self, key: str, content: bytes, tag: str) -> str | None:
        return await self._store().replace(key, content, tag)

    async def delete(self, key: str) -> None:
        await self._store().delete(key)

    async def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> Sequence[StateKey]:
        return await self._store().list(prefix, after=after, limit=limit)

    def _store(self) -> StateStore:
        storage = self._storages.find(self._location)
        if storage is None:
            raise Unavailable("the state's storage is not open here; see state.location")
        # A reload opens storages anew.
        if self._opened is None or self._opened[0] is not storage:
            self._opened = storage, open_below(storage, self._location, key=_PATH)
        return self._opened[1]


class ProvedState:
    """A state store that is written to only once it was seen to keep to conditions.

    A store that puts in any case would let two workers have one job, and lose what was acknowledged.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._is_proved = False

    async def prove(self) -> None:
        """Try the conditions on a scratch key; raise ``Unsupported`` where the store does not keep them."""
        async with self._lock:
            if not self._is_proved:
                await _prove(self._store)
                self._is_proved = True

    async def prove_at_start(self) -> None:
        """Do so where the store answers; raise ``ConfigError`` for one that cannot hold the state."""
        try:
            await self.prove()
        except Unavailable as exc:
            log.warning("the state is not there yet, and is tried again when it is needed: %s", exc.message)
        except Unsupported as exc:
            raise ConfigError([Fault(path=_PATH, message=exc.message)]) from exc

    async def get(self, key: str) -> StateEntry | None:
        return await self._store.get(key)

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return await self._store.get_range(key, start, length)

    async def create(self, key: str, content: bytes) -> str | None:
        return await self._proved(lambda: self._store.create(key, content))

    async def replace(self, key: str, content: bytes, tag: str) -> str | None:
        return await self._proved(lambda: self._store.replace(key, content, tag))

    async def delete(self, key: str) -> None:
        await self._store.delete(key)

    async def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> Sequence[StateKey]:
        return await self._store.list(prefix, after=after, limit=limit)

    async def _proved(self, put: Callable[[], Awaitable[T]]) -> T:
        if not self._is_proved:
            await self.prove()
        return await put()


async def _prove(store: StateStore) -> None:
    key = f"{_SCRATCH}/{secrets.token_hex(8)}"
    try:
        first = await store.create(key, b"first") or await _tag_of(store, key, b"first")
        if not first:
            raise _unfit("says that a new key is taken")
        if await store.create(key, b"second") is not None:
            raise _unfit("creates what is there already")
        second = await store.replace(key, b"second", first) or await _tag_of(store, key, b"second")
        if not second or await store.replace(key, b"third", first) is not None:
            raise _unfit("does not replace one version of an object and no other")
        if await _tag_of(store, key, b"second") != second:
            raise _unfit("does not return what was put last")
    finally:
        await store.delete(key)


async def _tag_of(store: StateStore, key: str, content: bytes) -> str:
    """Return the tag of what was put, even if the answer to that was lost; empty when it is not there."""
    entry = await store.get(key)
    return entry.tag if entry is not None and entry.content == content else ""


def _unfit(what: str) -> Unsupported:
    return Unsupported(
        f"the store {what}, so it cannot hold what workers share: choose one that puts on conditions "
        "(If-None-Match, If-Match), or a directory"
    )
