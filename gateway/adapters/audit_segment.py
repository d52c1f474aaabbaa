"""Segments of an audit log: one is open and written to, the others are closed and can be shipped.

An open segment is ``audit-<replica>-<start>-<number>.jsonl.open``. Once closed it loses the ``.open``
and is never touched again, so whatever ends in ``.jsonl`` may be copied, moved or removed.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway.adapters.audit_disk import Disk, DiskFile, DiskLock
from gateway.errors import InvalidArgument
from gateway.ports import Clock

log = logging.getLogger(__name__)

OPEN_SUFFIX: Final = ".open"
_REPLICA: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OPEN_NAME: Final = re.compile(r"audit-(?P<replica>.+)-\d{8}T\d{12}Z-\d+\.jsonl\.open")
_LOCK_NAME: Final = re.compile(r"audit-.+\.lock")
_BLOCK: Final = 64 * 1024


class Segments:
    """Writes lines so that they are on disk when a call returns. Blocks; not for several threads."""

    def __init__(self, disk: Disk, *, replica: str, max_bytes: int, max_age: timedelta, clock: Clock) -> None:
        if not _REPLICA.fullmatch(replica):
            raise InvalidArgument(
                f"a replica id has up to 100 letters, digits, '.', '_' and '-', unlike {replica!r}"
            )
        self._disk = disk
        self._replica = replica
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock
        self._lock: DiskLock | None = None
        self._current: _Segment | None = None
        # Segments that a failing disk kept from being closed.
        self._unfinished: list[_Segment] = []
        self._started = 0

    def open(self) -> None:
        """Take the replica's lock, and close what processes that are gone have left open."""
        self._disk.prepare()
        self._take_lock()
        for name in self._disk.names():
            if match := _OPEN_NAME.fullmatch(name):
                self._recover(name, match["replica"])
            elif name != _lock_name(self._replica) and _LOCK_NAME.fullmatch(name):
                self._remove_stale_lock(name)

    def commit(self, lines: bytes) -> None:
        """Write whole lines and return when they are on disk; after an ``OSError`` none of them is kept."""
        self._finish_due(len(lines))
        if not lines:
            return
        segment = self._current or self._start()
        try:
            segment.file.append(lines)
            segment.file.sync()
        except OSError:
            # After a failed sync the kernel may have dropped the pages: this file is not written to again.
            self._unfinished.append(segment)
            self._current = None
            raise
        segment.size += len(lines)

    def close(self) -> None:
        """Close the open segment and let go of the lock."""
        try:
            self._retire_current()
            self._finish_retired()
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _finish_due(self, incoming: int) -> None:
        segment = self._current
        if segment is not None:
            age = self._clock() - segment.started_at
            # A clock that was set back must not keep a segment open for as long.
            stale = not timedelta(0) <= age < self._max_age
            full = segment.size >= self._max_bytes or segment.size + incoming > self._max_bytes
            if stale or full:
                self._retire_current()
        self._finish_retired()

    def _start(self) -> _Segment:
        if self._lock is None or not self._lock.held():
            self._take_lock()
        started_at = self._clock()
        taken = set(self._disk.names())
        name = self._next_name(started_at)
        while name in taken or name + OPEN_SUFFIX in taken:
            name = self._next_name(started_at)
        segment = _Segment(name=name, file=self._disk.create(name + OPEN_SUFFIX), started_at=started_at)
        try:
            # Without its name on disk, a synced file would not be found after a crash.
            self._disk.sync()
        except OSError:
            self._unfinished.append(segment)
            raise
        self._current = segment
        return segment

    def _next_name(self, started_at: datetime) -> str:
        self._started += 1
        return f"audit-{self._replica}-{started_at:%Y%m%dT%H%M%S%fZ}-{self._started:06d}.jsonl"

    def _retire_current(self) -> None:
        if self._current is not None:
            self._unfinished.append(self._current)
            self._current = None

    def _finish_retired(self) -> None:
        while self._unfinished:
            segment = self._unfinished[0]
            if segment.name + OPEN_SUFFIX in self._disk.names():
                self._publish(segment.name, segment.file, segment.size)
            self._unfinished.pop(0)
            with suppress(OSError):
                segment.file.close()

    def _publish(self, name: str, file: DiskFile, size: int) -> None:
        """Cut an open segment to a size, and close it for good; an empty one goes."""
        if file.size() > size:
            file.truncate(size)
            file.sync()
        if size:
            self._disk.rename(name + OPEN_SUFFIX, name)
        else:
            self._disk.remove(name + OPEN_SUFFIX)
        self._disk.sync()

    def _recover(self, open_name: str, replica: str) -> None:
        lock = None if replica == self._replica else self._disk.lock(_lock_name(replica))
        if replica != self._replica and lock is None:
            return
        try:
            file = self._disk.open(open_name)
            try:
                # Whoever wrote it may be gone before it was on disk, and a closed segment never changes.
                file.sync()
                self._publish(open_name.removesuffix(OPEN_SUFFIX), file, _whole_lines(file))
            finally:
                file.close()
        except FileNotFoundError:
            log.debug("the leftover segment is gone", extra={"segment": open_name})
        except OSError as exc:
            log.warning("a leftover segment stays open", extra={"segment": open_name, "reason": str(exc)})
        finally:
            if lock is not None:
                lock.release()

    def _remove_stale_lock(self, name: str) -> None:
        try:
            lock = self._disk.lock(name)
            if lock is not None:
                lock.release()
        except OSError as exc:
            log.warning("a leftover lock stays", extra={"lock": name, "reason": str(exc)})

    def _take_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()
        self._lock = self._disk.lock(_lock_name(self._replica))
        if self._lock is None:
            raise BlockingIOError(f"another process writes the audit log of replica {self._replica}")


@dataclass(slots=True, kw_only=True)
class _Segment:
    name: str
    file: DiskFile
    started_at: datetime
    # How much of the file is known to be on disk.
    size: int = 0


def _lock_name(replica: str) -> str:
    return f"audit-{replica}.lock"


def _whole_lines(file: DiskFile) -> int:
    """Return the size without a torn last line, which nobody was told is kept."""
    end = file.size()
    while end > 0:
        start = max(end - _BLOCK, 0)
        found = file.read(start, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
