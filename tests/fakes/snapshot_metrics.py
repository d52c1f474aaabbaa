"""Snapshot metrics that remember what was observed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass
class FakeSnapshotMetrics:
    # Kind and files of each reading of a log.
    loads: list[tuple[str, int]] = field(default_factory=list)
    # What became of each look for a newer version, and how old what was served had become.
    checks: list[str] = field(default_factory=list)
    ages: list[timedelta] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    # Kind, used and skipped.
    hints: list[tuple[str, int, int]] = field(default_factory=list)
    # Kept and dropped.
    pruned: list[tuple[int, int]] = field(default_factory=list)
    # How many snapshots are kept, and their bytes.
    memory: tuple[int, int] = (0, 0)
    # For each segment whether its lines were kept.
    segments: list[bool] = field(default_factory=list)
    lines: int = 0
    # What became of each index that was looked for.
    indexes: list[str] = field(default_factory=list)
    # Of each query over an index: blocks read, and blocks left out.
    blocks: list[tuple[int, int]] = field(default_factory=list)

    def observe_load(self, kind: str, elapsed: timedelta, files: int) -> None:
        self.loads.append((kind, files))

    def count_check(self, outcome: str) -> None:
        self.checks.append(outcome)

    def observe_staleness(self, age: timedelta, freshness: timedelta) -> None:
        self.ages.append(age)

    def count_fallback(self, reason: str) -> None:
        self.fallbacks.append(reason)

    def count_hints(self, kind: str, used: int, skipped: int) -> None:
        self.hints.append((kind, used, skipped))

    def count_pruned(self, kept: int, dropped: int) -> None:
        self.pruned.append((kept, dropped))

    def set_memory(self, snapshots: int, size: int) -> None:
        self.memory = snapshots, size

    def count_segment(self, *, is_kept: bool) -> None:
        self.segments.append(is_kept)

    def set_lines(self, size: int) -> None:
        self.lines = size

    def count_index(self, outcome: str) -> None:
        self.indexes.append(outcome)

    def count_blocks(self, read: int, skipped: int) -> None:
        self.blocks.append((read, skipped))
