"""Which files of a log make up a version of a table."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gateway.domain.log import commit_name
from gateway.errors import GatewayError
from gateway.ports import LogFile
from gateway.services.snapshot.log.fault import faulty, version_gone
from gateway.services.snapshot.log.listing import Checkpoint, Compaction, LogListing
from gateway.services.snapshot.log.metadata import Metadata

# Writers leave removes out of a compaction that are older than the table keeps removed files, although the
# files may be in an older checkpoint: they would come back. So it must be younger than any such time.
_FRESH: Final = timedelta(days=1)
_RETENTION: Final = "delta.deletedFileRetentionDuration"
_AT_LEAST_A_DAY: Final = re.compile(r"\s*(?:interval\s+)?0*[1-9][0-9]*\s+(?:day|week)s?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """What to read for a version: a checkpoint's parts, if any, then what came after it, in order."""

    version: int
    anchor: LogFile
    checkpoint: Checkpoint = ()
    # Commits, and compactions in place of several.
    steps: tuple[LogFile | Compaction, ...]

    @property
    def compactions(self) -> list[LogFile]:
        return [step.file for step in self.steps if isinstance(step, Compaction)]


def find_segment(listing: LogListing, version: int, unusable: Collection[LogFile] = ()) -> LogSegment:
    """Return what to read for a version; raise ``Unsupported`` when some of it is missing."""
    start, checkpoint = _newest_checkpoint(listing, version, unusable)
    steps, reached = _walk(listing, start, version, unusable)
    anchor = listing.find_anchor(version)
    if reached != version or anchor is None:
        raise _lacks(listing, min(reached + 1, version), version)
    return LogSegment(version=version, anchor=anchor, checkpoint=checkpoint, steps=tuple(steps))


def find_commits(listing: LogListing, after: int, version: int) -> list[LogFile] | None:
    """Return the commits that lead from one version to another; None when one of them is missing."""
    commits: list[LogFile] = []
    # Ends with the first that is missing: a name may claim any version.
    while (step := after + 1 + len(commits)) <= version:
        if step not in listing.commits:
            return None
        commits.append(listing.commits[step])
    return commits


def keeps_removes(metadata: Metadata | None) -> bool:
    """Tell whether a fresh compaction of the table has all removes of its commits."""
    if metadata is None:
        return False
    kept = metadata.configuration.get(_RETENTION)
    return kept is None or _AT_LEAST_A_DAY.fullmatch(kept) is not None


def _newest_checkpoint(
    listing: LogListing, version: int, unusable: Collection[LogFile]
) -> tuple[int, Checkpoint]:
    for known in sorted((known for known in listing.checkpoints if known <= version), reverse=True):
        for checkpoint in listing.checkpoints[known]:
            if not any(part in unusable for part in checkpoint):
                return known, checkpoint
    return -1, ()


def _walk(
    listing: LogListing, after: int, version: int, unusable: Collection[LogFile]
) -> tuple[list[LogFile | Compaction], int]:
    """Return the steps that lead towards a version, and how far they lead."""
    steps: list[LogFile | Compaction] = []
    reached = after
    while reached < version:
        step = _find_compaction(listing, reached + 1, version, unusable) or listing.commits.get(reached + 1)
        if step is None:
            break
        steps.append(step)
        reached = step.last if isinstance(step, Compaction) else reached + 1
    return steps, reached


def _find_compaction(
    listing: LogListing, first: int, version: int, unusable: Collection[LogFile]
) -> Compaction | None:
    commit = listing.commits.get(first)
    if commit is None:
        return None
    return next(
        (
            found
            for found in listing.compactions.get(first, ())
            if found.last <= version
            and found.file.size
            and found.file.modified_at - commit.modified_at < _FRESH
            and found.file not in unusable
        ),
        None,
    )


def _lacks(listing: LogListing, missing: int, version: int) -> GatewayError:
    # Writers clean up from the first commit on, and never what the latest version needs.
    is_cleaned_up = version < listing.newest and missing < min(listing.commits, default=missing + 1)
    name = commit_name(missing)
    problem = f"lacks {name}, without which version {version} cannot be read"
    return (version_gone if is_cleaned_up else faulty)(problem, file=name)
