"""Which files of a log make up its latest version, for whoever reads them elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gateway.domain.index import LogPlan, to_ms
from gateway.domain.log import LogFileKind, parse_log_name, version_prefix
from gateway.ports import LogFile
from gateway.services.snapshot.log.actions import read_checkpoint
from gateway.services.snapshot.log.listing import Checkpoint, LogListing, list_log, list_recent, look_through
from gateway.services.snapshot.log.segment import LogSegment, find_commits, find_segment
from gateway.services.snapshot.log.sidecar import sidecar_names
from gateway.services.snapshot.log.table_log import TableLog


async def plan_log(log: TableLog) -> LogPlan:
    """Return what the latest version is made up of: a checkpoint as it would be chosen here, and commits."""
    listing = await list_recent(log)
    segment = await look_through(log, listing, _find_segment)
    sidecars = await _find_sidecars(log, segment.checkpoint)
    commits = [step for step in segment.steps if isinstance(step, LogFile)]
    return _plan(segment.anchor, segment.version, commits, segment.checkpoint, sidecars)


async def plan_steps(log: TableLog, after: int, size: int, modified_at: datetime) -> LogPlan | None:
    """Return the commits from a version on to the latest; None when they do not lead there.

    Nor do they where the file that stands for the version is not as large and as old as is said.
    """
    listing = await list_log(log, version_prefix(after))
    stated, anchor = listing.find_anchor(after), listing.find_anchor(listing.newest)
    if (
        stated is None
        or anchor is None
        or stated.size != size
        or to_ms(stated.modified_at) != to_ms(modified_at)
    ):
        return None
    commits = await look_through(log, listing, find_commits, after, listing.newest)
    return None if commits is None else _plan(anchor, listing.newest, commits, (), ())


def _plan(
    anchor: LogFile,
    version: int,
    commits: Sequence[LogFile],
    checkpoint: Checkpoint,
    sidecars: Sequence[str],
) -> LogPlan:
    return LogPlan(
        version=version,
        anchor=anchor.name,
        anchor_size=anchor.size,
        anchor_at=anchor.modified_at,
        checkpoint=tuple(part.name for part in checkpoint),
        sidecars=tuple(sidecars),
        commits=tuple(commit.name for commit in commits),
        size=sum(file.size for file in (*checkpoint, *commits)),
    )


def _find_segment(listing: LogListing) -> LogSegment:
    # Commits say the same as what they were compacted to, and are simpler to read.
    compacted = {found.file for each in listing.compactions.values() for found in each}
    return find_segment(listing, listing.latest, compacted)


async def _find_sidecars(log: TableLog, checkpoint: Checkpoint) -> Sequence[str]:
    name = parse_log_name(checkpoint[0].name) if checkpoint else None
    if name is None or name.kind is not LogFileKind.V2_CHECKPOINT:
        return ()
    content = await log.reader.read_log(log.location, checkpoint[0].name)
    actions = await log.parse(read_checkpoint, checkpoint[0].name, content)
    return sidecar_names(checkpoint[0].name, actions.sidecars, log.location) if actions.sidecars else ()
