"""Metrics of the reading of logs, and of the snapshots that are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_DURATIONS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_AGES: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
# Beyond what a table's freshness allows: a log that is listed and read takes seconds.
_OVERDUE: Final = timedelta(minutes=1)
# Shown from the start, so that what has not happened is 0 and not missing.
_LOADS: Final = ("cold", "refresh")
_CHECKS: Final = ("listed", "failed", "skipped")
_FALLBACKS: Final = ("checkpoint", "compaction")
_HINTS: Final = ("sql", "json")
_USES: Final = ("used", "skipped")
_INDEXES: Final = ("used", "none", "missing", "stale", "corrupt", "later", "old", "unavailable")


class PrometheusSnapshotMetrics:
    """Implements ``SnapshotMetrics``. Labels are words of our own, so they are few."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._loads = Histogram(
            "sluice_snapshot_load_duration_seconds",
            "Of reading a table's log: cold from its checkpoint on, refresh by its new commits.",
            ("kind",),
            buckets=_DURATIONS,
            registry=registry,
        )
        self._loaded = _counter(registry, "loaded_files", "Live files of the snapshots made.", "kind")
        self._checks = _counter(
            registry, "checks", "Looks whether a kept version is the latest, by outcome.", "outcome"
        )
        self._staleness = Histogram(
            "sluice_snapshot_staleness_seconds",
            "How long ago it was checked that the version that is served is the latest.",
            buckets=_AGES,
            registry=registry,
        )
        self._overdue = _counter(
            registry, "overdue", "Answers of versions that were checked a minute too long ago, or longer."
        )
        self._fallbacks = _counter(
            registry, "fallbacks", "Files of a log that something else took the place of.", "reason"
        )
        self._hints = _counter(
            registry, "hints", "Predicate hints by whether they could be used.", "kind", "use"
        )
        self._pruned = _counter(
            registry, "pruned_files", "Files that the hints of queries left in or out.", "outcome"
        )
        self._kept = Gauge("sluice_snapshot_kept", "Snapshots that are kept.", registry=registry)
        self._memory = Gauge("sluice_snapshot_memory_bytes", "What they take.", registry=registry)
        self._segments = _counter(
            registry, "segments", "Segments of files by whether their lines were kept or written.", "lines"
        )
        self._lines = Gauge(
            "sluice_snapshot_lines_bytes", "What the lines that are kept take.", registry=registry
        )
        self._indexes = _counter(
            registry, "indexes", "Versions read by a table's index, or why it was not used.", "outcome"
        )
        self._blocks = _counter(
            registry, "index_blocks", "Blocks of indexes that queries read, or left out.", "outcome"
        )
        self._show()

    def observe_load(self, kind: str, elapsed: timedelta, files: int) -> None:
        self._loads.labels(kind).observe(elapsed.total_seconds())
        self._loaded.labels(kind).inc(files)

    def count_check(self, outcome: str) -> None:
        self._checks.labels(outcome).inc()

    def observe_staleness(self, age: timedelta, freshness: timedelta) -> None:
        self._staleness.observe(age.total_seconds())
        if age > freshness + _OVERDUE:
            self._overdue.inc()

    def count_fallback(self, reason: str) -> None:
        self._fallbacks.labels(reason).inc()

    def count_hints(self, kind: str, used: int, skipped: int) -> None:
        self._hints.labels(kind, "used").inc(used)
        self._hints.labels(kind, "skipped").inc(skipped)

    def count_pruned(self, kept: int, dropped: int) -> None:
        self._pruned.labels("kept").inc(kept)
        self._pruned.labels("dropped").inc(dropped)

    def set_memory(self, snapshots: int, size: int) -> None:
        self._kept.set(snapshots)
        self._memory.set(size)

    def count_segment(self, *, is_kept: bool) -> None:
        self._segments.labels("kept" if is_kept else "written").inc()

    def set_lines(self, size: int) -> None:
        self._lines.set(size)

    def count_index(self, outcome: str) -> None:
        self._indexes.labels(outcome).inc()

    def count_blocks(self, read: int, skipped: int) -> None:
        self._blocks.labels("read").inc(read)
        self._blocks.labels("skipped").inc(skipped)

    def _show(self) -> None:
        for kind in _LOADS:
            self._loads.labels(kind)
            self._loaded.labels(kind)
        for outcome in _CHECKS:
            self._checks.labels(outcome)
        for reason in _FALLBACKS:
            self._fallbacks.labels(reason)
        for kind in _HINTS:
            for use in _USES:
                self._hints.labels(kind, use)
        for lines in ("kept", "written"):
            self._segments.labels(lines)
        for outcome in _INDEXES:
            self._indexes.labels(outcome)
        self.count_pruned(0, 0)
        self.count_blocks(0, 0)


def _counter(registry: CollectorRegistry, name: str, help_text: str, *labels: str) -> Counter:
    return Counter(f"sluice_snapshot_{name}", help_text, labels, registry=registry)
