"""Reads the logs of tables in an object store, through obstore."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import obstore
from obstore.store import ObjectStore

from gateway.domain.location import Location
from gateway.errors import GatewayError, NotFound, Unavailable, Unsupported
from gateway.ports import LogFile
from vendors.obstore_error import STORE_ERRORS, Failure, read_error

_LOG: Final = "_delta_log"
_PAGE: Final = 1000

log = logging.getLogger(__name__)


class ObstoreReader:
    """Takes a store that is opened on a whole bucket or container, or what opens it on first use.

    obstore sends a key as it is, whatever it holds (``%``, ``*``, ``?``, blanks, any letter). What it would
    change or refuse is refused by ``Location`` already: empty segments, dots, control characters.
    """

    def __init__(self, store: ObjectStore | Callable[[], Awaitable[ObjectStore]]) -> None:
        self._store = store

    async def list_log(self, table: Location, *, start: str) -> Sequence[LogFile]:
        directory = key_below(table, _LOG)
        before = _just_before(start)
        offset = f"{directory}/{before}" if before else None
        found: list[LogFile] = []
        try:
            store = await self._opened()
            async for page in obstore.list(store, directory, offset=offset, chunk_size=_PAGE):
                for meta in page:
                    name = meta["path"].removeprefix(f"{directory}/")
                    # A listing goes down into directories, of which a log has a few.
                    if "/" not in name and name >= start:
                        found.append(LogFile(name, meta["size"], meta["last_modified"]))
        except STORE_ERRORS as exc:
            error = _error(exc, table)
            if isinstance(error, NotFound):
                return []
            raise error from None
        return sorted(found, key=lambda file: file.name)

    async def read_log(self, table: Location, name: str) -> bytes:
        try:
            result = await obstore.get_async(await self._opened(), key_below(table, f"{_LOG}/{name}"))
            return bytes(await result.bytes_async())
        except STORE_ERRORS as exc:
            raise _error(exc, table, name) from None

    async def _opened(self) -> ObjectStore:
        if callable(self._store):
            self._store = await self._store()
        return self._store


def key_below(location: Location, path: str) -> str:
    """Return the key of what lies at ``path`` below a location."""
    return f"{location.path}/{path}" if location.path else path


def _just_before(start: str) -> str:
    """Return a name that sorts before ``start`` with next to nothing in between, or nothing.

    A store lists what comes *after* an offset, and ``start`` itself is asked for.
    """
    if not start:
        return ""
    previous = chr(max(ord(start[-1]) - 1, 0))
    if previous == "/":
        previous = "-"
    # Without its end a name sorts before itself too, only further away.
    return start[:-1] + (previous if " " < previous < "\x7f" else "")


def _error(exc: Exception, table: Location, name: str = "") -> GatewayError:
    """Return what is raised in place of ``exc``, which may repeat a session token and goes no further."""
    found = read_error(exc)
    if found.failure is Failure.MISSING:
        return NotFound(f"the table's log has no file {name}" if name else "the table has no log")
    # The recipient is told nothing of the store; the operator needs its code.
    log.warning(
        "the log of a table could not be read: %s; see the options of its storage",
        found.words,
        extra={"location": str(table)},
    )
    if found.failure is Failure.DENIED:
        return Unsupported(
            "permission denied: the gateway may not read the table's log", error_code=NotFound.default_code
        )
    return Unavailable("the table's log cannot be read at the moment; try again later")
