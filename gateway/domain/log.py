"""The files of a Delta log, told apart by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

DIRECTORY: Final = "_delta_log"
MAX_VERSION: Final = 2**63 - 1

_VERSION: Final = r"(?P<version>[0-9]{20})"


class LogFileKind(StrEnum):
    COMMIT = "commit"
    # In one file, or in numbered parts that only count when they are all there.
    CHECKPOINT = "checkpoint"
    # Named by a UUID, with its files in sidecars.
    V2_CHECKPOINT = "v2 checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogName:
    """What a log file's name says about its content."""

    kind: LogFileKind
    version: int
    part: int = 1
    parts: int = 1


_PATTERNS: Final = {
    LogFileKind.COMMIT: re.compile(rf"{_VERSION}\.json"),
    LogFileKind.CHECKPOINT: re.compile(
        rf"{_VERSION}\.checkpoint(?:\.(?P<part>[0-9]{{10}})\.(?P<parts>[0-9]{{10}}))?\.parquet"
    ),
    LogFileKind.V2_CHECKPOINT: re.compile(
        rf"{_VERSION}\.checkpoint\.[0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}}\.(?:json|parquet)"
    ),
}


def parse_log_name(name: str) -> LogName | None:
    """Return what the name says; None for what a replay does not need: checksums, compactions, hints."""
    for kind, pattern in _PATTERNS.items():
        match = pattern.fullmatch(name)
        if match and int(match["version"]) <= MAX_VERSION:
            groups = match.groupdict()
            return LogName(
                kind=kind,
                version=int(groups["version"]),
                part=int(groups.get("part") or 1),
                parts=int(groups.get("parts") or 1),
            )
    return None


def version_prefix(version: int) -> str:
    """Return where the names of a version's files begin, in the order of a listing."""
    return f"{version:020d}"


def commit_name(version: int) -> str:
    return f"{version:020d}.json"


def checkpoint_name(version: int, part: int = 1, parts: int = 1) -> str:
    if parts == 1:
        return f"{version:020d}.checkpoint.parquet"
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"
