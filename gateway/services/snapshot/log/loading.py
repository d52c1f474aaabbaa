"""Reads what a version of a table is made up of, by way of whatever its log still has in order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gateway.errors import GatewayError, NotFound, Unavailable, Unsupported
from gateway.ports import LogFile
from gateway.services.snapshot.log.actions import Actions, read_checkpoint, read_commits
from gateway.services.snapshot.log.batching import share_out
from gateway.services.snapshot.log.bounds import Budget
from gateway.services.snapshot.log.fault import damaged, missing
from gateway.services.snapshot.log.gathering import gather
from gateway.services.snapshot.log.listing import Checkpoint, Compaction, LogListing, list_log, look_through
from gateway.services.snapshot.log.segment import LogSegment, find_commits, find_segment, keeps_removes
from gateway.services.snapshot.log.sidecar import sidecar_names
from gateway.services.snapshot.log.table_log import TableLog

# How many commits of one log are read at a time; and of the files of a checkpoint, which are large.
_SMALL: Final = 16
_LARGE: Final = 4
# How many checkpoints and compactions are tried: whoever writes a log may leave any number that are none.
_MAX_UNUSABLE: Final = 16

# Takes ``checkpoint`` or ``compaction``: a file that something else took the place of.
CountFallback = Callable[[str], None]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The actions that make up a version, or lead to it from another one."""

    version: int
    # The log file that stands for the version.
    anchor: LogFile
    # Of a checkpoint's parts and sidecars; empty without one.
    checkpoint: Sequence[Actions]
    # In the order of the versions; one may hold the actions of several.
    commits: Sequence[Actions]


async def load_version(
    log: TableLog,
    listing: LogListing,
    version: int,
    *,
    room: int | None = None,
    count_fallback: CountFallback | None = None,
) -> Loaded:
    """Return a version from its checkpoint on, or from an older one, or from the first commit.

    A listing may be out of date, or a part of the log only: where it does not lead to the version, the log is
    listed again, once. Raise ``Unsupported`` when its files do not make up the version, naming the one that
    stands in the way, ``Unavailable`` when the store does not answer, and ``Crowded`` when a checkpoint comes
    to more bytes than there is room for.
    """
    reading = _Reading(log=log, version=version, room=room, count_fallback=count_fallback)
    try:
        return await reading.load(listing)
    except (NotFound, Unsupported, _Changed):
        # Cleaned up since it was listed, or not every store lists a moment: a commit may be there that
        # came later than one that is not.
        listing = await list_log(log)
    try:
        return await reading.load(listing)
    except NotFound as exc:
        raise missing("files of the log of {} cannot be found") from exc
    except _Changed as exc:
        raise Unavailable(
            f"the table's log is being written: {exc} is not as long as it is listed; try again later"
        ) from exc


async def load_steps(log: TableLog, listing: LogListing, after: int, version: int) -> Loaded | None:
    """Return the commits that lead from one version to a later one; None when they do not.

    Where one of them is damaged and a checkpoint leads past it, that is the way to go.
    """
    files = await look_through(log, listing, find_commits, after, version)
    anchor = listing.find_anchor(version)
    if files is None or anchor is None:
        return None
    try:
        commits = [await _read_batch(log, batch) for batch in share_out(files, _size)]
    except (NotFound, _Changed):
        return None
    except Unsupported:
        if any(after < known <= version for known in listing.checkpoints):
            return None
        raise
    return Loaded(version=version, anchor=anchor, checkpoint=(), commits=commits)


class _Changed(Exception):
    """A file is not what was listed: it is being written, or was cut short on its way."""


@dataclass(slots=True, kw_only=True)
class _Reading:
    log: TableLog
    version: int
    # For what is decoded of a checkpoint; None: for any.
    room: int | None
    count_fallback: CountFallback | None
    # What was found to be of no use, as it was listed: one that is written anew gets another chance.
    unusable: set[LogFile] = field(default_factory=set)
    # Why the first of them was not.
    reason: GatewayError | None = None
    passed_over: int = 0

    async def load(self, listing: LogListing) -> Loaded:
        while True:
            segment = await self._find(listing)
            checkpoint = await self._read_checkpoint(segment.checkpoint)
            commits = None if checkpoint is None else await self._read_steps(segment)
            if checkpoint is None or commits is None:
                continue
            if segment.compactions and not _keeps_removes([*checkpoint, *commits]):
                self.unusable.update(segment.compactions)
                continue
            return Loaded(version=self.version, anchor=segment.anchor, checkpoint=checkpoint, commits=commits)

    async def _find(self, listing: LogListing) -> LogSegment:
        try:
            return await look_through(self.log, listing, find_segment, self.version, self.unusable)
        except Unsupported as exc:
            # Without the damage there would be no gap: it is what whoever mends the log must know.
            raise self.reason or exc from None

    async def _read_checkpoint(self, files: Checkpoint) -> Sequence[Actions] | None:
        """Return what the checkpoint says; None when it is of no use."""
        try:
            budget = Budget(room=self.room)
            parts = await gather((partial(_read_part, self.log, file, budget) for file in files), _LARGE)
            if files and not (any(part.protocol for part in parts) and any(part.metadata for part in parts)):
                raise damaged(files[0].name, "has no protocol or no metaData action")
            names = await self._find_sidecars(files, [path for part in parts for path in part.sidecars])
            reads = (partial(_read_sidecar, self.log, name, budget) for name in names)
            sidecars = await gather(reads, _LARGE)
        except (NotFound, Unsupported, _Changed) as exc:
            self._pass_over("checkpoint", files, exc)
            return None
        return [*parts, *sidecars]

    async def _find_sidecars(self, files: Checkpoint, paths: Sequence[str]) -> Sequence[str]:
        if not paths:
            return ()
        return await self.log.parse(sidecar_names, files[0].name, paths, self.log.location)

    async def _read_steps(self, segment: LogSegment) -> Sequence[Actions] | None:
        """Return what came after the checkpoint; None when a compaction is of no use."""
        read: list[Actions] = []
        for batch in share_out(segment.steps, _size, _is_compaction):
            try:
                read.append(await _read_batch(self.log, batch))
            except (NotFound, Unsupported, _Changed) as exc:
                compactions = [step.file for step in batch if isinstance(step, Compaction)]
                if not compactions:
                    raise
                self._pass_over("compaction", compactions, exc)
                return None
        return read

    def _pass_over(self, kind: str, files: Sequence[LogFile], exc: Exception) -> None:
        self.unusable.update(files)
        self.passed_over += 1
        if self.reason is None and isinstance(exc, Unsupported):
            self.reason = exc
        if self.passed_over > _MAX_UNUSABLE:
            raise self.reason or damaged(files[0].name, "and many others cannot be read")
        if self.count_fallback is not None:
            self.count_fallback(kind)
        facts = {"location": str(self.log.location), "file": files[0].name, "error": str(exc)}
        _log.warning("a %s in a table's log is passed over", kind, extra=facts)


def _keeps_removes(actions: Sequence[Actions]) -> bool:
    return keeps_removes(next((part.metadata for part in reversed(actions) if part.metadata), None))


async def _read_part(log: TableLog, file: LogFile, budget: Budget) -> Actions:
    # Parquet tells by itself whether it is whole, and may be written anew at any time.
    checked = file.name.endswith(".json")
    content = await (_read_whole(log, file) if checked else log.reader.read_log(log.location, file.name))
    return await log.parse(read_checkpoint, file.name, content, budget)


async def _read_sidecar(log: TableLog, name: str, budget: Budget) -> Actions:
    content = await log.reader.read_log(log.location, name)
    return await log.parse(read_checkpoint, name, content, budget)


async def _read_batch(log: TableLog, batch: Sequence[LogFile | Compaction]) -> Actions:
    files = [step.file if isinstance(step, Compaction) else step for step in batch]
    contents = await gather((partial(_read_whole, log, file) for file in files), _SMALL)
    named = [(file.name, content) for file, content in zip(files, contents, strict=True)]
    return await log.parse(read_commits, named)


async def _read_whole(log: TableLog, file: LogFile) -> bytes:
    content = await log.reader.read_log(log.location, file.name)
    if len(content) != file.size:
        # Lines that are not there yet cannot be told from lines that there are not.
        raise _Changed(file.name)
    return content


def _is_compaction(step: LogFile | Compaction) -> bool:
    return isinstance(step, Compaction)


def _size(step: LogFile | Compaction) -> int:
    return step.file.size if isinstance(step, Compaction) else step.size
