"""The commits of a range of versions, read a bounded part at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from gateway.errors import InvalidArgument, NotFound, Unavailable
from gateway.ports import LogFile
from gateway.services.snapshot.changes.commit import Commit, CommitFile, parse_commits
from gateway.services.snapshot.log.batching import share_out
from gateway.services.snapshot.log.gathering import gather
from gateway.services.snapshot.log.history import History
from gateway.services.snapshot.log.listing import LogListing
from gateway.services.snapshot.log.table_log import TableLog

# How many files of one log are read at a time.
_CONCURRENCY: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRange:
    """Versions from the first to the last, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBatch:
    """Commits one after the other, and how many bytes of the log they are."""

    commits: Sequence[Commit]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    version: int
    file: LogFile
    timestamp: int


class CommitReader:
    """Reads commits by their own files: a checkpoint does not tell how a version came about."""

    def __init__(self, log: TableLog, listing: LogListing, history: History | None) -> None:
        self._log = log
        self._listing = listing
        self._history = history

    def require(self, versions: ChangeRange) -> None:
        """Raise ``InvalidArgument`` with the first version that can be asked for when a commit is gone."""
        history, last = self._history, versions.last
        if history is None or not history.first <= last <= history.latest:
            raise _gone(last, last)
        # Not one by one: it has no gap, and a range may be of a hundred thousand versions.
        if versions.first < history.first:
            raise _gone(history.first - 1, last)

    async def read(self, versions: ChangeRange) -> AsyncIterator[CommitBatch]:
        """Read commits that are there, in ascending order."""
        numbers = range(versions.first, versions.last + 1)
        found = (self._place(version, versions.last) for version in numbers)
        for places in share_out(found, lambda place: place.file.size):
            reads = (partial(self._read_file, place, versions.last) for place in places)
            files = await gather(reads, _CONCURRENCY)
            commits = await self._log.parse(parse_commits, files)
            yield CommitBatch(commits=commits, size=sum(len(file.content) for file in files))

    async def _read_file(self, place: _Place, last: int) -> CommitFile:
        name = place.file.name
        try:
            content = await self._log.reader.read_log(self._log.location, name)
        except NotFound as exc:
            raise _gone(place.version, last) from exc
        if len(content) != place.file.size:
            # Lines that are not there yet cannot be told from lines that there are not.
            raise Unavailable(f"the table's log is being written: {name} is not as long as it is listed")
        return CommitFile(version=place.version, timestamp=place.timestamp, name=name, content=content)

    def _place(self, version: int, last: int) -> _Place:
        file = self._listing.commits.get(version)
        timestamp = self._history.timestamp_of(version) if self._history else None
        if file is None or timestamp is None:
            raise _gone(version, last)
        return _Place(version=version, file=file, timestamp=timestamp)


def _gone(version: int, last: int) -> InvalidArgument:
    reason = f"the table's log no longer holds the changes of version {version}"
    earliest = f"; the earliest available version is {version + 1}" if version < last else ""
    return InvalidArgument(reason + earliest)
