"""The directory of an audit log: files that are appended to, and locks that say who writes."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

log = logging.getLogger(__name__)

_OWNER_ONLY: Final = 0o600


class DiskFile(Protocol):
    def append(self, data: bytes) -> None:
        """Write all of the data at the end, or raise."""

    def sync(self) -> None:
        """Bring what was written to the disk; raise when that, or the file itself, is lost."""

    def read(self, start: int, length: int) -> bytes: ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


class DiskLock(Protocol):
    def held(self) -> bool:
        """Tell whether the lock still keeps others out, which it does not once its file was removed."""

    def release(self) -> None: ...


class Disk(Protocol):
    """One directory, by the names in it. Every method raises ``OSError`` when the disk does not obey."""

    def prepare(self) -> None:
        """Make the directory if it is not there. One that vanishes later is not made again."""

    def names(self) -> Sequence[str]: ...

    def create(self, name: str) -> DiskFile:
        """Make a new file and return it for appending."""

    def open(self, name: str) -> DiskFile: ...

    def rename(self, name: str, new_name: str) -> None: ...

    def remove(self, name: str) -> None: ...

    def sync(self) -> None:
        """Bring new, renamed and removed names to the disk."""

    def lock(self, name: str) -> DiskLock | None:
        """Return the lock of that name, or None when another process holds it."""


class LocalDisk:
    """A directory of the file system, readable by its owner alone."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def prepare(self) -> None:
        # Once and not again: a directory that was a mount point would come back on the wrong disk.
        self._directory.parent.mkdir(parents=True, exist_ok=True)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        if self._directory.stat().st_mode & 0o077:
            log.warning(
                "others may look into the audit log's directory", extra={"path": str(self._directory)}
            )

    def names(self) -> Sequence[str]:
        return sorted(path.name for path in self._directory.iterdir())

    def create(self, name: str) -> LocalFile:
        return self._open(name, os.O_CREAT | os.O_EXCL)

    def open(self, name: str) -> LocalFile:
        return self._open(name, 0)

    def rename(self, name: str, new_name: str) -> None:
        (self._directory / name).rename(self._directory / new_name)

    def remove(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)

    def sync(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, name: str) -> LocalLock | None:
        path = self._directory / name
        while True:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _OWNER_ONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)
                raise
            lock = LocalLock(path, descriptor)
            if lock.held():
                return lock
            # The holder before us removed the file after we had opened it: what we locked is not there.
            os.close(descriptor)

    def _open(self, name: str, flags: int) -> LocalFile:
        flags |= os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return LocalFile(os.open(self._directory / name, flags, _OWNER_ONLY))


class LocalFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def append(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def sync(self) -> None:
        os.fsync(self._descriptor)
        # Writing to a file that somebody has removed succeeds, and keeps nothing.
        if os.fstat(self._descriptor).st_nlink == 0:
            raise FileNotFoundError("the open segment was removed")

    def read(self, start: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, start)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)


class LocalLock:
    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def held(self) -> bool:
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        ours = os.fstat(self._descriptor)
        return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)

    def release(self) -> None:
        if self.held():
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
