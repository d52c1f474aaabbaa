"""Files below a directory that get their names at once or not at all, whoever else writes there."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

from gateway.domain.local_file import open_beneath
from gateway.domain.state_key import RESERVED, is_state_key

_LOCK: Final = f"{RESERVED}lock"
_NEW: Final = f"{RESERVED}new-"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
# Its holder writes one name: who waits longer waits for a process that stands still.
PATIENCE: Final = timedelta(seconds=10)
_PAUSE: Final = timedelta(milliseconds=2)
# A file without a name of its own that is older was left by a process that died.
_ABANDONED: Final = timedelta(hours=1)
_ATTEMPTS: Final = 20

log = logging.getLogger(__name__)


class StateFiles:
    """Raises ``OSError`` when the file system does not obey."""

    def __init__(self, path: Path, patience: timedelta) -> None:
        self.path = path
        self._patience = patience
        self._is_prepared = False

    @contextmanager
    def opened(self, key: str) -> Iterator[int]:
        """Give a descriptor of what a key names, for reading."""
        file = open_beneath(self.path, key.split("/"))
        try:
            yield file
        finally:
            os.close(file)

    @contextmanager
    def directory(self, prefix: str) -> Iterator[int]:
        """Give a descriptor of the directory of a prefix."""
        with self._root() as root, _below(root, prefix.split("/")[:-1]) as directory:
            yield directory

    @contextmanager
    def written(self, content: bytes) -> Iterator[str]:
        """Write a file that has no name of its own yet; it is gone at the end unless it was moved."""
        self._prepare()
        name = f"{_NEW}{secrets.token_hex(12)}"
        with self._root() as root:
            try:
                _write(root, name, content)
                yield name
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=root)

    def give_name(self, new: str, key: str) -> bool:
        """Give a written file its name; tell whether that was free."""
        *parents, last = key.split("/")
        with self._root() as root:
            for _ in range(_ATTEMPTS):
                # Who deletes the last file of a directory removes that too, perhaps at this moment.
                with suppress(FileNotFoundError), _below(root, parents, make=True) as directory:
                    try:
                        os.link(new, last, src_dir_fd=root, dst_dir_fd=directory, follow_symlinks=False)
                    except FileExistsError:
                        return False
                    os.fsync(directory)
                    return True
        raise OSError(errno.EAGAIN, "a directory goes whenever it is made")

    def move(self, new: str, key: str) -> None:
        """Put a written file in place of the one that has the name."""
        *parents, last = key.split("/")
        with self._root() as root, _below(root, parents) as directory:
            os.rename(new, last, src_dir_fd=root, dst_dir_fd=directory)
            os.fsync(directory)

    def remove(self, key: str) -> None:
        """Remove a file, and the directories that it leaves empty."""
        *parents, last = key.split("/")
        with self._root() as root:
            with _below(root, parents) as directory:
                os.unlink(last, dir_fd=directory)
                os.fsync(directory)
            with suppress(OSError):
                while parents:
                    with _below(root, parents[:-1]) as above:
                        os.rmdir(parents.pop(), dir_fd=above)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others who lock out until the end."""
        with self._root() as root:
            lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=root)
        try:
            _lock(lock, self._patience)
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _root(self) -> Iterator[int]:
        # Links on the way to it are the operator's word.
        root = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield root
        finally:
            os.close(root)

    def _prepare(self) -> None:
        if self._is_prepared:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        if self.path.stat().st_mode & 0o077:
            log.warning("others may look into the directory of the state", extra={"path": str(self.path)})
        self._tidy()
        self._is_prepared = True

    def _tidy(self) -> None:
        with self._root() as root, os.scandir(root) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                    if entry.name.startswith(_NEW) and age > _ABANDONED.total_seconds():
                        os.unlink(entry.name, dir_fd=root)


def found_below(directory: int, prefix: str, after: str) -> Iterator[tuple[str, os.stat_result]]:
    """Return each file below a directory by its key, in the order of the keys, from after one on."""
    with os.scandir(directory) as entries:
        # As a directory's files sort: the slash counts.
        names = sorted(
            f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name for entry in entries
        )
    for name in names:
        key = f"{prefix}{name}"
        if not is_state_key(key.removesuffix("/")):
            continue
        # What was listed may be gone by now.
        with suppress(FileNotFoundError, NotADirectoryError):
            if not name.endswith("/"):
                if key > after and (status := _regular(directory, name)):
                    yield key, status
            elif key > after or after.startswith(key):
                below = os.open(name[:-1], _DIRECTORY, dir_fd=directory)
                try:
                    yield from found_below(below, key, after)
                finally:
                    os.close(below)


def _regular(directory: int, name: str) -> os.stat_result | None:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    return status if stat.S_ISREG(status.st_mode) else None


@contextmanager
def _below(root: int, names: list[str], *, make: bool = False) -> Iterator[int]:
    opened = os.dup(root)
    try:
        for name in names:
            if make:
                _make(opened, name)
            below = os.open(name, _DIRECTORY, dir_fd=opened)
            os.close(opened)
            opened = below
        yield opened
    finally:
        os.close(opened)


def _make(directory: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=directory)
        os.fsync(directory)


def _write(root: int, name: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(name, flags, 0o600, dir_fd=root)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)


def _lock(file: int, patience: timedelta) -> None:
    give_up = time.monotonic() + patience.total_seconds()
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise
            time.sleep(_PAUSE.total_seconds())
        else:
            return
