"""When the versions of a table were committed."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final

from gateway.domain.window import EPOCH
from gateway.errors import InvalidArgument, NotFound, Unsupported
from gateway.services.snapshot.log.commit_time import read_commit_time
from gateway.services.snapshot.log.gathering import gather
from gateway.services.snapshot.log.listing import LogListing
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.table_log import TableLog

_ENABLED: Final = "delta.enableInCommitTimestamps"
_ENABLED_FROM: Final = "delta.inCommitTimestampEnablementVersion"
_VERSION: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
# How many commits are read at a time for their times alone.
_CONCURRENCY: Final = 16
# How many are lined up for that.
_AT_ONCE: Final = 1024


class History:
    """The commits that the log still holds without a gap, up to the latest.

    A commit was made when its file was written, or when it says itself where the table's commits do. Commits
    that say it are read when their time is asked for, and ascend by the rules of the log: a search reads few.
    """

    def __init__(
        self, *, log: TableLog, listing: LogListing, first: int, by_file: Sequence[int], latest: int
    ) -> None:
        self.first = first
        self.latest = latest
        self._log = log
        self._listing = listing
        # Milliseconds since the epoch, strictly ascending, of ``first`` and the versions after it; the
        # versions after these say it themselves.
        self._by_file = by_file
        self._in_commits: dict[int, int] = {}

    def timestamp_of(self, version: int) -> int | None:
        """Return when a version was committed; None when its commit is gone, or was to be loaded first."""
        index = version - self.first
        if 0 <= index < len(self._by_file):
            return self._by_file[index]
        return self._in_commits.get(version)

    async def load(self, versions: Iterable[int]) -> None:
        """Read the times of versions, as far as their commits are there, so that they can be told."""
        if self._enabled_from > self.latest:
            return
        unread = filter(self._is_unread, versions)
        # Some at a time: to line up a hundred thousand would hold up the event loop.
        while wanted := list(islice(unread, _AT_ONCE)):
            times = await gather((partial(self._read, version) for version in wanted), _CONCURRENCY)
            self._in_commits.update(zip(wanted, times, strict=True))

    async def version_as_of(self, at: datetime, since: int = 0) -> int:
        """Return the version that was the latest at a time, of those since a version."""
        first = self._first_since(since)
        if await self.begins_after(at, since):
            raise InvalidArgument(
                f"the timestamp {_text(at)} is before the earliest available version {first}; "
                f"it must be greater than or equal to {_text_of(await self._time(first))}"
            )
        if await self.ends_before(at):
            raise InvalidArgument(f"{await self._after_latest(at)}; leave it out to read the latest version")
        return await self._count(first, to_ms(at), inclusive=True) + first - 1

    async def version_from(self, at: datetime, since: int = 0) -> int:
        """Return the first version that was committed at a time or after it, of those since a version."""
        if await self.ends_before(at):
            raise InvalidArgument(await self._after_latest(at))
        first = self._first_since(since)
        return min(await self._count(first, to_ms(at), inclusive=False) + first, self.latest)

    async def begins_after(self, at: datetime, since: int = 0) -> bool:
        return to_ms(at) < await self._time(self._first_since(since))

    async def ends_before(self, at: datetime) -> bool:
        return to_ms(at) > await self._time(self.latest)

    def _first_since(self, version: int) -> int:
        return min(max(version, self.first), self.latest)

    @property
    def _enabled_from(self) -> int:
        """Return the first version that says itself when it was made."""
        return self.first + len(self._by_file)

    async def _count(self, first: int, ms: int, *, inclusive: bool) -> int:
        """Return how many versions, from the first on, were committed before a time, or also at it."""
        enabled_from = max(self._enabled_from, first)
        is_told = enabled_from <= self.latest
        if not is_told or not _is_before(await self._time(enabled_from), ms, inclusive=inclusive):
            by_file = self._by_file[first - self.first :]
            return bisect_right(by_file, ms) if inclusive else bisect_left(by_file, ms)
        low, high = enabled_from, self.latest
        # The last version that was committed by then lies between the two.
        while low < high:
            middle = (low + high + 1) // 2
            if _is_before(await self._time(middle), ms, inclusive=inclusive):
                low = middle
            else:
                high = middle - 1
        return low - first + 1

    def _is_unread(self, version: int) -> bool:
        return self._enabled_from <= version <= self.latest and version not in self._in_commits

    async def _time(self, version: int) -> int:
        if self._is_unread(version):
            self._in_commits[version] = await self._read(version)
        time = self.timestamp_of(version)
        if time is None:
            raise _untold()
        return time

    async def _read(self, version: int) -> int:
        name = self._listing.commits[version].name
        try:
            content = await self._log.reader.read_log(self._log.location, name)
        except NotFound as exc:
            raise _untold() from exc
        return await self._log.parse(read_commit_time, name, content)

    async def _after_latest(self, at: datetime) -> str:
        return (
            f"the timestamp {_text(at)} is after the latest available version {self.latest}, "
            f"which was committed at {_text_of(await self._time(self.latest))}"
        )


async def read_history(log: TableLog, listing: LogListing, metadata: Metadata) -> History | None:
    """Return the history of a log; None when the latest version is known by a checkpoint only.

    The metadata is the latest, which says since when commits have had times of their own.
    """
    if listing.latest not in listing.commits:
        return None
    return await asyncio.to_thread(_history, log, listing, _enabled_from(metadata))


def to_ms(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def _history(log: TableLog, listing: LogListing, enabled_from: int | None) -> History:
    first = last = listing.latest
    while first - 1 in listing.commits:
        first -= 1
    by_file: list[int] = []
    for version in range(first, last + 1 if enabled_from is None else min(enabled_from, last + 1)):
        modified = to_ms(listing.commits[version].modified_at)
        # Clocks of writers differ: a commit counts as later than the one before it, whatever its file says.
        by_file.append(max(modified, by_file[-1] + 1) if by_file else modified)
    return History(log=log, listing=listing, first=first, by_file=by_file, latest=last)


def _enabled_from(metadata: Metadata) -> int | None:
    if not metadata.is_on(_ENABLED):
        return None
    stated = metadata.configuration.get(_ENABLED_FROM, "")
    # Without it the table has been so from its first version on.
    return int(stated) if _VERSION.fullmatch(stated) else 0


def _is_before(time: int, ms: int, *, inclusive: bool) -> bool:
    return time <= ms if inclusive else time < ms


def _untold() -> Unsupported:
    return Unsupported("the table's log no longer holds the commits that tell when its versions were made")


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text_of(ms: int) -> str:
    return _text(EPOCH + timedelta(milliseconds=ms))
