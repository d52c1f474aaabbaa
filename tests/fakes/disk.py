"""A directory in memory that can fail and crash as a disk does."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(eq=False)
class FakeDisk:
    """Remembers what a crash would keep: synced bytes for certain, later ones as the crash decides."""

    files: dict[str, FakeInode] = field(default_factory=dict)
    # Names as they were when the directory was synced last.
    synced: dict[str, FakeInode] = field(default_factory=dict)
    locks: dict[str, FakeLock] = field(default_factory=dict)
    gone: bool = False
    # Called with the name of each operation; raises to make it fail.
    fault: Callable[[str], None] = lambda operation: None
    operations: list[str] = field(default_factory=list)

    def prepare(self) -> None:
        self.begin("prepare")

    def names(self) -> Sequence[str]:
        self.begin("names")
        return sorted(self.files)

    def create(self, name: str) -> FakeFile:
        self.begin("create")
        if name in self.files:
            raise FileExistsError(errno.EEXIST, "exists", name)
        self.files[name] = FakeInode()
        return FakeFile(self, self.files[name])

    def open(self, name: str) -> FakeFile:
        self.begin("open")
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, "not found", name)
        return FakeFile(self, self.files[name])

    def rename(self, name: str, new_name: str) -> None:
        self.begin("rename")
        assert new_name not in self.files, "a closed segment would be overwritten"
        self.files[new_name] = self.files.pop(name)

    def remove(self, name: str) -> None:
        self.begin("remove")
        self.files.pop(name, None)

    def sync(self) -> None:
        self.begin("sync names")
        self.synced = dict(self.files)

    def lock(self, name: str) -> FakeLock | None:
        self.begin("lock")
        if name in self.locks:
            return None
        self.locks[name] = FakeLock(self, name)
        return self.locks[name]

    def crash(self, keep: Callable[[int, int], int], *, names_synced: bool) -> None:
        """Lose what was not synced: ``keep`` picks each file's length between two bounds."""
        if not names_synced:
            self.files = dict(self.synced)
        for inode in self.files.values():
            del inode.content[keep(inode.synced, len(inode.content)) :]
            inode.synced = len(inode.content)
        self.synced = dict(self.files)
        self.locks.clear()
        self.fault = lambda operation: None

    def content(self, suffix: str) -> bytes:
        return b"".join(inode.content for name, inode in sorted(self.files.items()) if name.endswith(suffix))

    def begin(self, operation: str) -> None:
        """Record an operation; raise if it fails."""
        self.operations.append(operation)
        if self.gone:
            raise FileNotFoundError(errno.ENOENT, "the directory is gone")
        self.fault(operation)


@dataclass(eq=False)
class FakeInode:
    content: bytearray = field(default_factory=bytearray)
    synced: int = 0


@dataclass(eq=False)
class FakeFile:
    disk: FakeDisk
    inode: FakeInode

    def append(self, data: bytes) -> None:
        # A full disk takes a part of what it is given.
        half = len(data) // 2
        self.inode.content += data[:half]
        self.disk.begin("append")
        self.inode.content += data[half:]

    def sync(self) -> None:
        self.disk.begin("sync")
        if self.inode not in self.disk.files.values():
            raise FileNotFoundError(errno.ENOENT, "removed")
        self.inode.synced = len(self.inode.content)

    def read(self, start: int, length: int) -> bytes:
        self.disk.begin("read")
        return bytes(self.inode.content[start : start + length])

    def size(self) -> int:
        return len(self.inode.content)

    def truncate(self, size: int) -> None:
        self.disk.begin("truncate")
        del self.inode.content[size:]
        self.inode.synced = min(self.inode.synced, size)

    def close(self) -> None:
        self.disk.operations.append("close")


@dataclass(eq=False)
class FakeLock:
    disk: FakeDisk
    name: str

    def held(self) -> bool:
        return self.disk.locks.get(self.name) is self

    def release(self) -> None:
        if self.held():
            del self.disk.locks[self.name]


class Faults:
    """Makes the next operations fail, once each."""

    def __init__(self, *operations: str, code: int = errno.ENOSPC) -> None:
        self.left = list(operations)
        self._code = code

    def __call__(self, operation: str) -> None:
        if operation in self.left:
            self.left.remove(operation)
            raise OSError(self._code, "the disk said no")
