"""Local files as they are served: opened without leaving their directory, read from threads."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from asyncio import Future
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gateway.domain.local_file import modified_at, open_beneath

_GONE: Final = frozenset({errno.ENOENT, errno.ENAMETOOLONG})
_REFUSED: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ENXIO})


class FileGone(Exception):
    """There is no such file."""


class FileRefused(Exception):
    """There is something of that name that is not to be served: a link, a directory, a pipe."""


class FileFailed(Exception):
    """The file cannot be opened or read at the moment: too many are open, or the disk fails."""


class LocalFile:
    """A regular file that is open, and what it was when it was opened."""

    def __init__(self, descriptor: int, status: os.stat_result) -> None:
        self._descriptor = descriptor
        # A closed descriptor's number may be another file's already: no read may come after the close.
        self._lock = threading.Lock()
        self._closed = False
        self.size = status.st_size
        self.modified_at = modified_at(status).replace(microsecond=0)
        self.etag = f'"{status.st_size:x}-{status.st_mtime_ns:x}"'

    async def read(self, offset: int, length: int) -> bytes:
        """Return at most this much from there, nothing beyond the file's end; raise ``FileFailed``."""
        try:
            return await asyncio.to_thread(self._read, offset, length)
        except OSError as exc:
            raise FileFailed from exc

    def close(self) -> None:
        """Close soon, without waiting for a read that is under way."""
        asyncio.get_running_loop().run_in_executor(None, self._close)

    def _read(self, offset: int, length: int) -> bytes:
        with self._lock:
            return b"" if self._closed else os.pread(self._descriptor, length, offset)

    def _close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)


async def open_local_file(root: Path, segments: Sequence[str]) -> LocalFile:
    """Open a regular file below a root; raise ``FileGone``, ``FileRefused`` or ``FileFailed``."""
    opening = asyncio.get_running_loop().run_in_executor(None, _open, root, segments)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        # The thread goes on, and what it opens is nobody's.
        opening.add_done_callback(_close_opened)
        raise


def _open(root: Path, segments: Sequence[str]) -> LocalFile:
    try:
        descriptor = open_beneath(root, segments)
    except OSError as exc:
        raise _error(exc) from exc
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise FileRefused
    return LocalFile(descriptor, status)


def _error(exc: OSError) -> FileGone | FileRefused | FileFailed:
    if exc.errno in _GONE:
        return FileGone()
    return FileRefused() if exc.errno in _REFUSED else FileFailed()


def _close_opened(opening: Future[LocalFile]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
