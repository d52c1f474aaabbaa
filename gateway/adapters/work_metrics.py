"""Metrics of jobs: what waits, what runs, and how runs end."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.domain.job import JobKind

_DURATIONS: Final = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 10800.0, 21600.0)
# Shown from the start, so that what has not happened is 0 and not missing.
_OUTCOMES: Final = ("done", "retried", "failed", "lost", "released")


class PrometheusQueueMetrics:
    """Implements ``QueueMetrics``. Labels are words of our own, so they are few."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._queued = Gauge(
            "sluice_jobs_queued",
            "Jobs that waited when this process last looked.",
            ("kind",),
            registry=registry,
        )
        self._oldest = Gauge(
            "sluice_jobs_oldest_queued_seconds",
            "How long the oldest of them had waited.",
            ("kind",),
            registry=registry,
        )
        self._running = Gauge(
            "sluice_jobs_running",
            "Jobs that some worker ran when this process last looked.",
            ("kind",),
            registry=registry,
        )
        for kind in JobKind:
            self.set_queue(kind, 0, 0, timedelta(0))

    def set_queue(self, kind: JobKind, queued: int, running: int, oldest: timedelta) -> None:
        self._queued.labels(kind).set(queued)
        self._oldest.labels(kind).set(oldest.total_seconds())
        self._running.labels(kind).set(running)


class PrometheusWorkMetrics:
    """Implements ``WorkMetrics``, by the same few labels."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._finished = Counter(
            "sluice_jobs_finished",
            "Runs of this worker by how they ended.",
            ("kind", "outcome"),
            registry=registry,
        )
        self._durations = Histogram(
            "sluice_jobs_duration_seconds",
            "Of this worker's runs, from claim to end.",
            ("kind",),
            buckets=_DURATIONS,
            registry=registry,
        )
        self._losses = Counter(
            "sluice_jobs_lease_losses",
            "Runs that this worker had to give up as their leases were lost.",
            ("kind",),
            registry=registry,
        )
        for kind in JobKind:
            self._durations.labels(kind)
            self._losses.labels(kind)
            for outcome in _OUTCOMES:
                self._finished.labels(kind, outcome)

    def observe_run(self, kind: JobKind, outcome: str, elapsed: timedelta) -> None:
        self._finished.labels(kind, outcome).inc()
        self._durations.labels(kind).observe(elapsed.total_seconds())

    def count_lease_loss(self, kind: JobKind) -> None:
        self._losses.labels(kind).inc()
