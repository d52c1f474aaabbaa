"""The closed segments in an audit log's directory, as what waits to be shipped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Final

from gateway.adapters.audit_disk import LocalDisk, LocalLock

# Unlike those of writers, which each open of the directory clears away.
_LOCK: Final = "shipping.lock"
_RELEASE_TIMEOUT: Final = timedelta(seconds=2)
_NAME: Final = re.compile(r"audit-.+-(?P<day>\d{8})T\d{12}Z-\d+\.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A closed segment."""

    name: str
    # Where it goes.
    key: str
    size: int
    # When its last line was written.
    closed_at: datetime


class Outbox:
    """Closed segments to ship. Methods block, and raise ``OSError`` on disk errors.

    A cancelled task leaves its call running in a thread, so a mutex serialises the calls that take or release
    the lock.
    """

    def __init__(self, directory: Path, *, release_timeout: timedelta = _RELEASE_TIMEOUT) -> None:
        self._directory = directory
        self._disk = LocalDisk(directory)
        self._lock: LocalLock | None = None
        self._mutex = Lock()
        self._release_timeout = release_timeout

    def take(self) -> bool:
        """True if this process ships from the directory; it takes the lock if no other process holds it."""
        with self._mutex:
            if self._lock is not None and self._lock.held():
                return True
            self._release()
            if not self._directory.exists():
                return False
            self._lock = self._disk.lock(_LOCK)
            return self._lock is not None

    def release(self) -> None:
        # A call on a disk that hangs must not hold up the end of the process, which releases the lock too.
        if not self._mutex.acquire(timeout=self._release_timeout.total_seconds()):
            return
        try:
            self._release()
        finally:
            self._mutex.release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def waiting(self) -> Sequence[Waiting]:
        """Return what is closed, the oldest first."""
        found = [
            self._find(name, match["day"]) for name in self._disk.names() if (match := _NAME.fullmatch(name))
        ]
        return sorted((one for one in found if one), key=lambda one: (one.key, one.name))

    def read(self, segment: Waiting) -> bytes | None:
        """Return a segment's content; None when it is gone."""
        try:
            return (self._directory / segment.name).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, segment: Waiting) -> None:
        self._disk.remove(segment.name)
        self._disk.sync()

    def _find(self, name: str, day: str) -> Waiting | None:
        try:
            status = (self._directory / name).lstat()
        except FileNotFoundError:
            return None
        return Waiting(
            name=name,
            key=f"{day[:4]}-{day[4:6]}-{day[6:]}/{name}",
            size=status.st_size,
            closed_at=datetime.fromtimestamp(status.st_mtime, tz=UTC),
        )
