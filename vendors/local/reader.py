"""Reads the logs of tables on the local file system."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from gateway.domain.local_file import modified_at, open_beneath
from gateway.domain.location import Location
from gateway.errors import GatewayError, NotFound, Unavailable, Unsupported
from gateway.ports import LogFile

_LOG: Final = "_delta_log"
_GONE: Final = frozenset({errno.ENOENT, errno.ENAMETOOLONG})
_LINKED: Final = frozenset({errno.ELOOP, errno.ENOTDIR})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})


class LocalReader:
    """Follows no link below the storage's prefix: whoever writes a table must not choose what we read."""

    def __init__(self, prefix: Location) -> None:
        self._prefix = prefix

    async def list_log(self, table: Location, *, start: str) -> Sequence[LogFile]:
        return await asyncio.to_thread(self._list, table, start)

    async def read_log(self, table: Location, name: str) -> bytes:
        return await asyncio.to_thread(self._read, table, name)

    def _list(self, table: Location, start: str) -> list[LogFile]:
        with suppress(NotFound), self._opened(table, (), os.O_DIRECTORY) as directory:
            with os.scandir(directory) as entries:
                found = [_log_file(entry) for entry in entries if entry.name >= start and _is_file(entry)]
            return sorted((file for file in found if file), key=lambda file: file.name)
        return []

    def _read(self, table: Location, name: str) -> bytes:
        with self._opened(table, name.split("/")) as file:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise NotFound(f"the table's log has no file {name}")
            with os.fdopen(file, "rb", closefd=False) as content:
                return content.read()

    @contextmanager
    def _opened(self, table: Location, names: Sequence[str], flags: int = 0) -> Iterator[int]:
        below = self._prefix.below(table)
        directory = below.split("/") if below else []
        try:
            opened = open_beneath(Path("/", self._prefix.path), [*directory, _LOG, *names], flags)
            try:
                yield opened
            finally:
                os.close(opened)
        except OSError as exc:
            raise _error(exc, "/".join(names)) from exc


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)


def _log_file(entry: os.DirEntry[str]) -> LogFile | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # removed since it was listed
        return None
    return LogFile(entry.name, found.st_size, modified_at(found))


def _error(exc: OSError, name: str) -> GatewayError:
    if exc.errno in _GONE:
        return NotFound(f"the table's log has no file {name}" if name else "the table has no log")
    if exc.errno in _LINKED:
        return Unsupported(
            "the table's log lies behind a symbolic link, which a local storage does not follow"
        )
    if exc.errno in _DENIED:
        return Unsupported(
            "permission denied: the gateway may not read the table's log", error_code=NotFound.default_code
        )
    return Unavailable("the table's log cannot be read at the moment; try again later")
