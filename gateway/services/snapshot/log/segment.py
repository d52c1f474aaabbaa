"""Which checkpoint and which commits make up a version of a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gateway.domain.log import LogFileKind, commit_name, parse_log_name
from gateway.errors import InvalidArgument, Unsupported
from gateway.ports import LogFile


@dataclass(frozen=True, slots=True, kw_only=True)
class LogListing:
    """The files of a log that a replay can use, by version."""

    commits: Mapping[int, LogFile]
    # Complete ones only, their parts in order.
    checkpoints: Mapping[int, tuple[LogFile, ...]]
    # Negative when there is none. Looked for once: a log may have a hundred thousand files.
    newest: int
    has_v2_checkpoint: bool = False

    @property
    def latest(self) -> int:
        """Return the newest version; raise ``InvalidArgument`` when there is none."""
        if self.newest < 0:
            raise InvalidArgument(
                "table files missing: there is no Delta log at the table's location",
                error_code="RESOURCE_DOES_NOT_EXIST",
            )
        return self.newest

    def find_anchor(self, version: int) -> LogFile | None:
        """Return the file that stands for a version: another one in its place is another table's."""
        return self.commits.get(version) or next(iter(self.checkpoints.get(version, ())), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """What to read for a version: a checkpoint's parts, if any, then the commits after it."""

    version: int
    anchor: LogFile
    checkpoint: tuple[LogFile, ...] = ()
    commits: tuple[LogFile, ...]


def read_listing(files: Iterable[LogFile]) -> LogListing:
    commits: dict[int, LogFile] = {}
    parts: dict[tuple[int, int], dict[int, LogFile]] = defaultdict(dict)
    has_v2_checkpoint = False
    for file in files:
        name = parse_log_name(file.name)
        if name is None:
            continue
        if name.kind is LogFileKind.COMMIT:
            commits[name.version] = file
        elif name.kind is LogFileKind.CHECKPOINT:
            parts[name.version, name.parts][name.part] = file
        else:
            has_v2_checkpoint = True
    checkpoints = _complete(parts)
    return LogListing(
        commits=commits,
        checkpoints=checkpoints,
        newest=max((*commits, *checkpoints), default=-1),
        has_v2_checkpoint=has_v2_checkpoint,
    )


def has_gap(listing: LogListing) -> bool:
    """Tell whether something is missing that the latest version is made up of."""
    return find_steps(listing, _start(listing, listing.latest), listing.latest) is None


def find_segment(listing: LogListing, version: int) -> LogSegment:
    """Return what to read for a version; raise ``Unsupported`` when some of it is missing."""
    start = _start(listing, version)
    segment = find_steps(listing, start, version)
    if segment is None:
        raise Unsupported(_missing(listing, start, version))
    return replace(segment, checkpoint=listing.checkpoints.get(start, ()))


def find_steps(listing: LogListing, after: int, version: int) -> LogSegment | None:
    """Return the commits that lead from one version to another; None when one of them is missing."""
    anchor = listing.find_anchor(version)
    # Counted before they are enumerated: a name may claim any version.
    if anchor is None or version - after > len(listing.commits):
        return None
    commits = [listing.commits.get(step) for step in range(after + 1, version + 1)]
    if None in commits:
        return None
    return LogSegment(version=version, anchor=anchor, commits=tuple(filter(None, commits)))


def _start(listing: LogListing, version: int) -> int:
    """Return the version of the checkpoint to begin with; -1 without one."""
    return max((known for known in listing.checkpoints if known <= version), default=-1)


def _complete(parts: Mapping[tuple[int, int], Mapping[int, LogFile]]) -> dict[int, tuple[LogFile, ...]]:
    # Counted, not enumerated: a name may claim any number of parts.
    return {
        version: tuple(found[part] for part in sorted(found))
        for (version, count), found in parts.items()
        if len(found) == count and min(found) == 1 and max(found) == count
    }


def _missing(listing: LogListing, start: int, version: int) -> str:
    step = next(step for step in range(start + 1, version + 1) if step not in listing.commits)
    reason = f"the table's log lacks {commit_name(step)}, without which version {version} cannot be read"
    if listing.has_v2_checkpoint:
        return f"{reason}; V2 checkpoints are not supported"
    return reason
