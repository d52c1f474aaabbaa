"""Snapshots by table: read once, brought up to date by the new commits alone, shared by all requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from gateway.domain.log import version_prefix
from gateway.errors import InvalidArgument, NotFound
from gateway.ports import Clock, LogFile
from gateway.services.snapshot.log.actions import Actions, read_checkpoint, read_commits
from gateway.services.snapshot.log.segment import (
    LogListing,
    LogSegment,
    find_segment,
    find_steps,
    has_gap,
    read_listing,
)
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.flight import SingleFlight
from gateway.services.snapshot.state.kept import KeptSnapshots
from gateway.services.snapshot.state.replay import advance, load
from gateway.services.snapshot.state.snapshot import Snapshot

# How many files of one log are read at a time.
_CONCURRENCY: Final = 16
# How much of a log is in memory as it was read, unless one commit alone is more.
_BATCH_FILES: Final = 256
_BATCH_BYTES: Final = 8 * 1024 * 1024
# Where looking at the names of a listing takes long enough to hold up the event loop.
_MANY_FILES: Final = 1000

T = TypeVar("T")

_log = logging.getLogger(__name__)


class SnapshotStore:
    """Every answer is as fresh as a listing that was under way when it was asked for, or later."""

    def __init__(self, *, memory: int, clock: Clock) -> None:
        self._kept = KeptSnapshots(memory)
        self._clock = clock
        self._listings: SingleFlight[LogListing] = SingleFlight()
        self._loads: SingleFlight[Snapshot] = SingleFlight()

    async def list_log(self, log: TableLog, start: str = "") -> LogListing:
        """Return the log's files from a name on; one listing serves all that ask while it runs."""

        async def work() -> LogListing:
            files = await log.reader.list_log(log.location, start=start)
            if not files and not start:
                # Whoever asked is told without the place; who runs this needs it.
                _log.warning(
                    "there is no Delta log where a table should be", extra={"location": str(log.location)}
                )
            if len(files) < _MANY_FILES:
                return read_listing(files)
            return await asyncio.to_thread(read_listing, files)

        return await self._listings.run((log.location, start), work)

    async def latest_version(self, log: TableLog) -> int:
        """Return the newest version without reading what is in it."""
        _, listing = await self._look(log)
        return listing.latest

    async def latest(self, log: TableLog) -> Snapshot:
        known, listing = await self._look(log)
        anchor = listing.find_anchor(listing.latest)
        kept = self._kept.find((log.location, None))
        if kept is not None and kept.anchor == anchor:
            return kept
        # By where it leads to: who has seen a version listed must not join a reading of an older one.
        return await self._loads.run((log.location, anchor), lambda: self._refresh(log, known, listing))

    async def at(self, log: TableLog, listing: LogListing, version: int) -> Snapshot:
        """Return the snapshot of a version that a listing of the whole log has."""
        for key in ((log.location, version), (log.location, None)):
            known = self._kept.find(key)
            if known is not None and (known.version, known.anchor) == (version, listing.find_anchor(version)):
                return known

        async def work() -> Snapshot:
            snapshot = await self._load(log, listing, version)
            self._kept.keep((log.location, version), snapshot)
            return snapshot

        return await self._loads.run((log.location, version), work)

    async def _look(self, log: TableLog) -> tuple[Snapshot | None, LogListing]:
        """Return the latest snapshot that is known and the log from there on, or else the whole log."""
        known = self._kept.find((log.location, None))
        if known is not None:
            listing = await self.list_log(log, version_prefix(known.version))
            if listing.find_anchor(known.version) == known.anchor:
                return known, listing
            # The table was made anew in its place, or its log was cleaned up.
        return None, await self.list_log(log)

    async def _refresh(self, log: TableLog, known: Snapshot | None, listing: LogListing) -> Snapshot:
        snapshot = None
        if known is not None:
            snapshot = await self._advance(log, known, listing)
            listing = listing if snapshot else await self.list_log(log)
        if snapshot is None:
            snapshot = await self._load(log, listing)
        self._kept.keep((log.location, None), snapshot)
        return snapshot

    async def _advance(self, log: TableLog, known: Snapshot, listing: LogListing) -> Snapshot | None:
        """Return the latest snapshot by way of a known one; None when that does not lead there."""
        steps = find_steps(listing, known.version, listing.latest)
        if steps is None:
            return None
        try:
            commits = await self._read_commits(log, steps.commits)
        except NotFound:
            return None
        return await asyncio.to_thread(advance, known, commits, steps.version, steps.anchor)

    async def _load(self, log: TableLog, listing: LogListing, version: int | None = None) -> Snapshot:
        """Read a version, the latest by default, from its checkpoint on."""
        if version is None and has_gap(listing):
            # Not every store lists a moment: a commit may be there that came later than one that is not.
            listing = await self.list_log(log)
        try:
            return await self._replay(log, find_segment(listing, _or_latest(version, listing)))
        except NotFound:
            # Cleaned up since it was listed: what takes its place is there by now.
            listing = await self.list_log(log)
        try:
            return await self._replay(log, find_segment(listing, _or_latest(version, listing)))
        except NotFound as exc:
            raise InvalidArgument(
                "table files missing: files of the table's log cannot be found",
                error_code="RESOURCE_DOES_NOT_EXIST",
            ) from exc

    async def _replay(self, log: TableLog, segment: LogSegment) -> Snapshot:
        started_at = self._clock()
        checkpoint = await _gather(partial(self._read_checkpoint, log, file) for file in segment.checkpoint)
        commits = await self._read_commits(log, segment.commits)
        snapshot = await asyncio.to_thread(load, checkpoint, commits, segment.version, segment.anchor)
        facts = {
            "location": str(log.location),
            "version": snapshot.version,
            "files": snapshot.files.num_files,
            "elapsed_ms": (self._clock() - started_at) // timedelta(milliseconds=1),
        }
        _log.info("a table's log was read from its checkpoint on", extra=facts)
        return snapshot

    async def _read_checkpoint(self, log: TableLog, file: LogFile) -> Actions:
        content = await log.reader.read_log(log.location, file.name)
        return await asyncio.to_thread(read_checkpoint, file.name, content)

    async def _read_commits(self, log: TableLog, files: Sequence[LogFile]) -> Sequence[Actions]:
        return [await self._read_batch(log, batch) for batch in _batches(files)]

    async def _read_batch(self, log: TableLog, files: Sequence[LogFile]) -> Actions:
        names = [file.name for file in files]
        contents = await _gather(partial(log.reader.read_log, log.location, name) for name in names)
        return await asyncio.to_thread(read_commits, list(zip(names, contents, strict=True)))


async def _gather(reads: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return what is read, so many at a time; the first failure stops the others."""
    slots = asyncio.Semaphore(_CONCURRENCY)

    async def run(read: Callable[[], Awaitable[T]]) -> T:
        async with slots:
            return await read()

    tasks = [asyncio.create_task(run(read)) for read in reads]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _batches(files: Sequence[LogFile]) -> Iterator[Sequence[LogFile]]:
    batch: list[LogFile] = []
    size = 0
    for file in files:
        if batch and (len(batch) == _BATCH_FILES or size + file.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def _or_latest(version: int | None, listing: LogListing) -> int:
    return listing.latest if version is None else version
