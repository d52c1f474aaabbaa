"""A state store on an object store with conditional puts, through obstore."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import ObjectStore

from gateway.domain.location import Location
from gateway.domain.state_key import check_state_key, check_state_prefix, is_state_key
from gateway.errors import Unavailable
from gateway.ports import StateEntry, StateKey
from vendors.obstore_error import STORE_ERRORS, Failure, read_error
from vendors.obstore_reader import key_below

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult, UpdateVersion

_PAGE: Final = 1000
# MinIO refuses about one create in a thousand while the last other key of its directory is deleted.
# A create that was refused wrote nothing, so it can be tried again; a real refusal is refused again.
_CREATE_BACKOFF: Final = (0.01, 0.05, 0.25)
# The condition was not met; stores differ in which error they return.
_CONDITIONS: Final = (AlreadyExistsError, PreconditionError)

log = logging.getLogger(__name__)


class ObstoreState:
    """``store`` is opened on a whole bucket or container, or is a function that opens it at first use.

    A store that ignores conditions overwrites: ``gateway.adapters.state`` proves that it does not.
    """

    def __init__(
        self,
        store: ObjectStore | Callable[[], Awaitable[ObjectStore]],
        location: Location,
        *,
        lists_in_order: bool = True,
    ) -> None:
        self._store = store
        self._location = location
        # Some stores list directory by directory, in which ``a-b/`` comes after ``a/``.
        self._lists_in_order = lists_in_order

    async def get(self, key: str) -> StateEntry | None:
        path = self._path(key)
        try:
            result = await obstore.get_async(await self._opened(), path)
            content = bytes(await result.bytes_async())
            return StateEntry(content=content, tag=_tag(result.meta))
        except STORE_ERRORS as exc:
            self._check_missing(exc)
            return None

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        path = self._path(key)
        try:
            store = await self._opened()
            return bytes(await obstore.get_range_async(store, path, start=start, length=length))
        except STORE_ERRORS as exc:
            # A store refuses a range that has nothing in it, each in words of its own.
            size = await self._size(path)
            if size is None:
                return None
            if length <= 0 or start >= size:
                return b""
            raise self._error(exc) from None

    async def create(self, key: str, content: bytes) -> str | None:
        path = self._path(key)
        delays = iter(_CREATE_BACKOFF)
        while True:
            try:
                return await self._put(path, content, "create")
            except STORE_ERRORS as exc:
                delay = next(delays, None)
                if delay is None or read_error(exc).failure is not Failure.DENIED:
                    raise self._error(exc) from None
            await asyncio.sleep(delay)

    async def replace(self, key: str, content: bytes, tag: str) -> str | None:
        try:
            return await self._put(self._path(key), content, _version(tag))
        except STORE_ERRORS as exc:
            # What was to be replaced is gone.
            self._check_missing(exc)
            return None

    async def delete(self, key: str) -> None:
        path = self._path(key)
        try:
            await obstore.delete_async(await self._opened(), path)
        except STORE_ERRORS as exc:
            self._check_missing(exc)

    async def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> Sequence[StateKey]:
        directory = key_below(self._location, check_state_prefix(prefix)).removesuffix("/")
        offset = key_below(self._location, after) if after and self._lists_in_order else None
        found: list[StateKey] = []
        try:
            store = await self._opened()
            async for page in obstore.list(store, directory or None, offset=offset, chunk_size=_PAGE):
                found += [one for meta in page if (one := self._found(meta)) and one.key > after]
                if len(found) >= limit and self._lists_in_order:
                    break
        except STORE_ERRORS as exc:
            self._check_missing(exc)
        return sorted(found, key=lambda one: one.key)[:limit]

    async def _put(self, path: str, content: bytes, mode: PutMode) -> str | None:
        try:
            return _tag(await obstore.put_async(await self._opened(), path, content, mode=mode))
        except _CONDITIONS:
            return None

    async def _size(self, path: str) -> int | None:
        try:
            return (await obstore.head_async(await self._opened(), path))["size"]
        except STORE_ERRORS as exc:
            self._check_missing(exc)
            return None

    def _found(self, meta: ObjectMeta) -> StateKey | None:
        key = meta["path"].removeprefix(key_below(self._location, ""))
        if not is_state_key(key):
            return None
        return StateKey(key=key, size=meta["size"], modified_at=meta["last_modified"])

    def _path(self, key: str) -> str:
        return key_below(self._location, check_state_key(key))

    async def _opened(self) -> ObjectStore:
        if callable(self._store):
            self._store = await self._store()
        return self._store

    def _check_missing(self, exc: Exception) -> None:
        """Raise ``Unavailable`` in place of what says anything but that nothing was found."""
        if read_error(exc).failure is not Failure.MISSING:
            raise self._error(exc) from None

    def _error(self, exc: Exception) -> Unavailable:
        """Return what is raised in place of ``exc``, which may repeat a session token and goes no further."""
        log.warning(
            "the state cannot be read or written: %s; see the storage that covers state.location",
            read_error(exc).words,
            extra={"location": str(self._location)},
        )
        return Unavailable("the state cannot be read or written at the moment; try again later")


def _tag(meta: ObjectMeta | PutResult) -> str:
    # Some stores go by one of them, some by the other.
    return f"{meta['e_tag'] or ''} {meta['version'] or ''}"


def _version(tag: str) -> UpdateVersion:
    e_tag, _, version = tag.partition(" ")
    found: UpdateVersion = {}
    if e_tag:
        found["e_tag"] = e_tag
    if version:
        found["version"] = version
    return found
