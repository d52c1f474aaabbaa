"""Keeps state in a directory of the file system, for all processes that see it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from gateway.domain.local_file import modified_at
from gateway.domain.state_key import check_state_key, check_state_prefix
from gateway.errors import Unavailable
from gateway.ports import StateEntry, StateKey
from vendors.local.state_files import PATIENCE, StateFiles, found_below

_ALL: Final = 2**62
_PIECE: Final = 2**24

T = TypeVar("T")

log = logging.getLogger(__name__)


class LocalState:
    """Follows no link below its directory, which its owner alone may look into.

    A file is written whole under another name and then given its own, so that nobody ever reads a part.
    Whoever replaces or deletes holds a lock of the file system's, which ends with its holder. A tag is the
    content's own: what was replaced and then put back is the same to whoever decides by what it says.
    """

    def __init__(self, directory: Path, *, patience: timedelta = PATIENCE) -> None:
        self._files = StateFiles(directory, patience)

    async def get(self, key: str) -> StateEntry | None:
        content = await self._run(lambda: self._read(check_state_key(key)))
        return None if content is None else StateEntry(content=content, tag=_tag(content))

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return await self._run(lambda: self._read(check_state_key(key), start, length))

    async def create(self, key: str, content: bytes) -> str | None:
        return await self._run(lambda: self._create(check_state_key(key), content))

    async def replace(self, key: str, content: bytes, tag: str) -> str | None:
        return await self._run(lambda: self._replace(check_state_key(key), content, tag))

    async def delete(self, key: str) -> None:
        await self._run(lambda: self._delete(check_state_key(key)))

    async def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> Sequence[StateKey]:
        return await self._run(lambda: self._list(check_state_prefix(prefix), after, limit))

    def _read(self, key: str, start: int = 0, length: int = _ALL) -> bytes | None:
        with suppress(FileNotFoundError, NotADirectoryError), self._files.opened(key) as file:
            if stat.S_ISREG(os.fstat(file).st_mode):
                return _read(file, start, length)
        return None

    def _create(self, key: str, content: bytes) -> str | None:
        with self._files.written(content) as new:
            return _tag(content) if self._files.give_name(new, key) else None

    def _replace(self, key: str, content: bytes, tag: str) -> str | None:
        # Asked before as well: most of those who come too late need not write anything.
        if not self._has(key, tag):
            return None
        with self._files.written(content) as new, self._files.locked():
            if not self._has(key, tag):
                return None
            self._files.move(new, key)
        return _tag(content)

    def _has(self, key: str, tag: str) -> bool:
        content = self._read(key)
        return content is not None and _tag(content) == tag

    def _delete(self, key: str) -> None:
        with suppress(FileNotFoundError), self._files.locked():
            self._files.remove(key)

    def _list(self, prefix: str, after: str, limit: int) -> Sequence[StateKey]:
        with suppress(FileNotFoundError, NotADirectoryError), self._files.directory(prefix) as directory:
            found = found_below(directory, prefix, after)
            return [
                StateKey(key=key, size=status.st_size, modified_at=modified_at(status))
                for key, status in islice(found, limit)
            ]
        return []

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as exc:
            reason = exc.strerror or type(exc).__name__
            log.warning(
                "the directory of the state cannot be used: %s", reason, extra={"path": str(self._files.path)}
            )
            raise Unavailable("the state cannot be read or written at the moment; try again later") from exc


def _read(file: int, start: int, length: int) -> bytes:
    pieces = []
    while length > 0 and (piece := os.pread(file, min(length, _PIECE), start)):
        pieces.append(piece)
        start += len(piece)
        length -= len(piece)
    return b"".join(pieces)


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
