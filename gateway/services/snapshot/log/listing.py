"""The files of a log that a replay can use, by version."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Concatenate, Final, ParamSpec, TypeVar

from gateway.domain.log import HINT, MAX_VERSION, LogFileKind, parse_log_name, version_prefix
from gateway.errors import GatewayError
from gateway.ports import LogFile
from gateway.services.snapshot.log.fault import missing
from gateway.services.snapshot.log.table_log import TableLog

# The files that make up a checkpoint but for its sidecars: the parts, in order.
Checkpoint = tuple[LogFile, ...]

P = ParamSpec("P")
T = TypeVar("T")

# A hint is a line of a few numbers; some writers put a schema into it.
_MAX_HINT: Final = 4 * 1024 * 1024
# From so many on, a look at all of them takes long enough to hold up the event loop.
_MANY_FILES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What the commits of some versions come to, in one file."""

    first: int
    last: int
    file: LogFile


@dataclass(frozen=True, slots=True, kw_only=True)
class LogListing:
    """What a listing has; a part of the log, where it began with a later name than the first."""

    commits: Mapping[int, LogFile]
    # Complete ones only. Of one version all say the same: any of them will do.
    checkpoints: Mapping[int, tuple[Checkpoint, ...]]
    # By the first version that they cover, the longest first.
    compactions: Mapping[int, tuple[Compaction, ...]] = field(default_factory=dict)
    # Negative when there is none. Found once, as the next is: a log may have a hundred thousand files.
    newest: int
    # Whether a commit is missing between others.
    has_gap: bool

    @property
    def latest(self) -> int:
        """Return the newest version; raise ``InvalidArgument`` when there is none."""
        if self.newest < 0:
            raise missing("there is no Delta log at the location of {}")
        return self.newest

    @property
    def is_long(self) -> bool:
        return len(self.commits) + len(self.checkpoints) >= _MANY_FILES

    def find_anchor(self, version: int) -> LogFile | None:
        """Return the file that stands for a version: another one in its place is another table's."""
        commit = self.commits.get(version)
        return commit or next((parts[0] for parts in self.checkpoints.get(version, ())), None)


def read_listing(files: Iterable[LogFile]) -> LogListing:
    """Return what is of use among files, which may come in any order."""
    commits: dict[int, LogFile] = {}
    parts: dict[tuple[int, int], dict[int, LogFile]] = defaultdict(dict)
    v2: dict[int, dict[str, LogFile]] = defaultdict(dict)
    compactions: dict[int, dict[int, LogFile]] = defaultdict(dict)
    for file in files:
        name = parse_log_name(file.name)
        if name is None:
            continue
        if name.kind is LogFileKind.COMMIT:
            commits[name.version] = file
        elif name.kind is LogFileKind.CHECKPOINT:
            parts[name.version, name.parts][name.part] = file
        elif name.kind is LogFileKind.V2_CHECKPOINT:
            v2[name.version][file.name] = file
        elif name.until is not None:
            compactions[name.version][name.until] = file
    checkpoints = _checkpoints(parts, v2)
    return LogListing(
        commits=commits,
        checkpoints=checkpoints,
        compactions={first: _longest_first(first, found) for first, found in compactions.items()},
        newest=max((*commits, *checkpoints), default=-1),
        has_gap=bool(commits) and max(commits) - min(commits) >= len(commits),
    )


async def list_log(log: TableLog, start: str = "") -> LogListing:
    """Return the log from a name on."""
    files = await log.reader.list_log(log.location, start=start)
    if len(files) < _MANY_FILES:
        return read_listing(files)
    return await log.parse(read_listing, files)


async def list_recent(log: TableLog) -> LogListing:
    """Return the log from the newest checkpoint on that its hint knows of, or else all of it.

    The hint is no authority: it counts if a complete checkpoint is where it points at. Then everything newer
    is listed too. A stale hint costs a longer listing, a wrong one a second listing, and neither the answer.
    """
    hint = await _read_hint(log)
    if hint is not None:
        listing = await list_log(log, version_prefix(hint))
        if hint in listing.checkpoints:
            return listing
    return await list_log(log)


async def look_through(
    log: TableLog,
    listing: LogListing,
    function: Callable[Concatenate[LogListing, P], T],
    *args: P.args,
    **options: P.kwargs,
) -> T:
    """Run what may look at every file of a listing: aside, where they are many."""
    if listing.is_long:
        return await log.parse(function, listing, *args, **options)
    return function(listing, *args, **options)


async def _read_hint(log: TableLog) -> int | None:
    try:
        content = await log.reader.read_log(log.location, HINT)
        if len(content) > _MAX_HINT:
            return None
        version = (await asyncio.to_thread(json.loads, content))["version"]
    except (GatewayError, ValueError, TypeError, KeyError, RecursionError):
        # Whatever is wrong with it, the log can be read without.
        return None
    return version if type(version) is int and 0 < version <= MAX_VERSION else None


def _checkpoints(
    parts: Mapping[tuple[int, int], Mapping[int, LogFile]], v2: Mapping[int, Mapping[str, LogFile]]
) -> dict[int, tuple[Checkpoint, ...]]:
    """Return the complete checkpoints of each version, in an order that does not depend on the listing's."""
    found: dict[int, list[Checkpoint]] = defaultdict(list)
    for (version, count), numbered in sorted(parts.items()):
        # Counted, not enumerated: a name may claim any number of parts.
        if len(numbered) == count and min(numbered) == 1 and max(numbered) == count:
            found[version].append(tuple(numbered[part] for part in sorted(numbered)))
    for version, named in v2.items():
        found[version] += [(named[name],) for name in sorted(named)]
    return {version: tuple(checkpoints) for version, checkpoints in found.items()}


def _longest_first(first: int, found: Mapping[int, LogFile]) -> tuple[Compaction, ...]:
    return tuple(Compaction(first=first, last=last, file=found[last]) for last in sorted(found, reverse=True))
