"""The files of a Delta log, told apart by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

DIRECTORY: Final = "_delta_log"
# Below the log's directory: the files that V2 checkpoints refer to.
SIDECARS: Final = "_sidecars"
# What writers leave behind to say where the newest checkpoint is.
HINT: Final = "_last_checkpoint"
MAX_VERSION: Final = 2**63 - 1

# One pattern for all kinds: a log may have a hundred thousand files.
_NAME: Final = re.compile(
    r"(?P<version>[0-9]{20})\."
    r"(?:(?P<commit>json)"
    r"|checkpoint\.(?:(?:(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.)?parquet"
    r"|(?P<uuid>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\.(?:json|parquet))"
    r"|(?P<until>[0-9]{20})\.compacted\.json)"
)


class LogFileKind(StrEnum):
    COMMIT = "commit"
    # In one file, or in numbered parts that only count when they are all there.
    CHECKPOINT = "checkpoint"
    # Named by a UUID, and whole by itself but for its sidecars.
    V2_CHECKPOINT = "v2 checkpoint"
    # What several commits come to.
    COMPACTION = "compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogName:
    """What a log file's name says about its content."""

    kind: LogFileKind
    version: int
    part: int = 1
    parts: int = 1
    # Of a compaction, the last version that it covers; ``version`` is the first.
    until: int | None = None


def parse_log_name(name: str) -> LogName | None:
    """Return what the name says; None for what a replay does not need: checksums, hints, anything else."""
    match = _NAME.fullmatch(name)
    if match is None or (version := int(match["version"])) > MAX_VERSION:
        return None
    if match["commit"]:
        return LogName(kind=LogFileKind.COMMIT, version=version)
    if match["uuid"]:
        return LogName(kind=LogFileKind.V2_CHECKPOINT, version=version)
    if match["until"]:
        return _compaction(version, int(match["until"]))
    return LogName(
        kind=LogFileKind.CHECKPOINT,
        version=version,
        part=int(match["part"] or 1),
        parts=int(match["parts"] or 1),
    )


def version_prefix(version: int) -> str:
    """Return where the names of a version's files begin, in the order of a listing."""
    return f"{version:020d}"


def commit_name(version: int) -> str:
    return f"{version:020d}.json"


def checkpoint_name(version: int, part: int = 1, parts: int = 1) -> str:
    if parts == 1:
        return f"{version:020d}.checkpoint.parquet"
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def compaction_name(first: int, last: int) -> str:
    return f"{first:020d}.{last:020d}.compacted.json"


def _compaction(first: int, last: int) -> LogName | None:
    if not first < last <= MAX_VERSION:
        return None
    return LogName(kind=LogFileKind.COMPACTION, version=first, until=last)
