"""When the versions of a table were committed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from gateway.domain.window import EPOCH
from gateway.errors import InvalidArgument
from gateway.services.snapshot.log.segment import LogListing


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The commits that the log still holds without a gap, up to the latest."""

    first: int
    # Milliseconds since the epoch, strictly ascending, of ``first`` and the versions after it.
    timestamps: tuple[int, ...]

    def since(self, version: int) -> History:
        """Return the part of the history that begins with a version, of those that there are."""
        gone = min(max(version - self.first, 0), len(self.timestamps) - 1)
        return History(first=self.first + gone, timestamps=self.timestamps[gone:])

    @property
    def latest(self) -> int:
        return self.first + len(self.timestamps) - 1

    def begins_after(self, at: datetime) -> bool:
        return _to_ms(at) < self.timestamps[0]

    def timestamp_of(self, version: int) -> int | None:
        """Return when a version was committed; None when its commit is gone."""
        index = version - self.first
        return self.timestamps[index] if 0 <= index < len(self.timestamps) else None

    def version_as_of(self, at: datetime) -> int:
        """Return the version that was the latest at a time."""
        if self.begins_after(at):
            raise InvalidArgument(
                f"the timestamp {_text(at)} is before the earliest available version {self.first}; "
                f"it must be greater than or equal to {self._time(0)}"
            )
        if _to_ms(at) > self.timestamps[-1]:
            raise InvalidArgument(self._after_latest(at))
        return self.first + bisect_right(self.timestamps, _to_ms(at)) - 1

    def version_from(self, at: datetime) -> int:
        """Return the first version that was committed at a time or after it."""
        index = bisect_left(self.timestamps, _to_ms(at))
        if index == len(self.timestamps):
            raise InvalidArgument(self._after_latest(at))
        return self.first + index

    def _after_latest(self, at: datetime) -> str:
        return (
            f"the timestamp {_text(at)} is after the latest available version {self.latest}, "
            f"which was committed at {self._time(-1)}"
        )

    def _time(self, index: int) -> str:
        return _text(EPOCH + timedelta(milliseconds=self.timestamps[index]))


def read_history(listing: LogListing) -> History | None:
    """Return the history of a log; None when the latest version is known by a checkpoint only."""
    first = last = listing.latest
    if last not in listing.commits:
        return None
    while first - 1 in listing.commits:
        first -= 1
    timestamps: list[int] = []
    for version in range(first, last + 1):
        modified = _to_ms(listing.commits[version].modified_at)
        # Clocks of writers differ: a commit counts as later than the one before it, whatever its file says.
        timestamps.append(max(modified, timestamps[-1] + 1) if timestamps else modified)
    return History(first=first, timestamps=tuple(timestamps))


def _to_ms(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
