"""The metrics of several processes as those of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, Metric, ProcessCollector
from prometheus_client.registry import Collector

# What stays counted when the process that counted it has ended.
_LASTING: Final = frozenset({"counter", "histogram", "summary"})
# Of these the smallest holds for all: since when, until when, whether, and a limit that each has for itself.
_LOWEST: Final = frozenset(
    {
        "process_max_fds",
        "process_start_time_seconds",
        "sluice_certificate_expiry_timestamp_seconds",
        "sluice_certificate_life_seconds",
        "sluice_config_last_reload_success_timestamp_seconds",
        "sluice_config_last_reload_successful",
        "sluice_service_reachable",
    }
)
# Of these the largest: the one that is nearest to its limit, and the one that has waited longest.
_HIGHEST: Final = frozenset({"process_open_fds", "sluice_audit_oldest_wait_seconds"})
_CREATED: Final = "_created"
_ENDED: Final = 0

# Metrics in the types of JSON.
Report = Sequence[Any]
_SampleKey = tuple[str, tuple[tuple[str, str], ...]]


def to_report(metrics: Iterable[Metric]) -> Report:
    return [
        [
            metric.name,
            metric.documentation,
            metric.type,
            [[sample.name, sample.labels, sample.value] for sample in metric.samples],
        ]
        for metric in metrics
    ]


def from_report(report: Report) -> Sequence[Metric]:
    metrics = []
    for name, documentation, kind, samples in report:
        metric = Metric(name, documentation, kind)
        for sample in samples:
            metric.add_sample(*sample)
        metrics.append(metric)
    return metrics


def merge(processes: Iterable[Iterable[Metric]]) -> Sequence[Metric]:
    """Return each metric once, its samples added up or combined in the way that fits them."""
    metrics: dict[str, Metric] = {}
    values: dict[str, dict[_SampleKey, float]] = {}
    for metric in (metric for process in processes for metric in process):
        metrics.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
        merged = values.setdefault(metric.name, {})
        for sample in metric.samples:
            key = sample.name, tuple(sample.labels.items())
            combine = _combination(metric.type, sample.name)
            merged[key] = combine(merged[key], sample.value) if key in merged else sample.value
    for name, metric in metrics.items():
        for (sample_name, labels), value in values[name].items():
            metric.add_sample(sample_name, dict(labels), value)
    return list(metrics.values())


class WorkerMetrics(Collector):
    """Adds up what workers report, and what those that are gone have reported last."""

    def __init__(self, running: Callable[[], float]) -> None:
        self._own = CollectorRegistry()
        ProcessCollector(registry=self._own)
        GCCollector(registry=self._own)
        workers = Gauge("sluice_workers", "Workers that serve.", registry=self._own)
        workers.set_function(running)
        self._restarts = Counter(
            "sluice_worker_restarts", "Workers that had to be replaced.", registry=self._own
        )
        # Replaced and never changed: it is read by another thread.
        self._reported: Mapping[int, Sequence[Metric]] = {}
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterable[Metric]:
        return merge([self._own.collect(), *self._reported.values()])

    def update(self, worker: int, report: Report) -> None:
        """Take the place of what this worker reported before; workers have numbers from 1."""
        self._reported = {**self._reported, worker: from_report(report)}

    def retire(self, worker: int) -> None:
        """Keep the counts of a worker that has ended."""
        reported = dict(self._reported)
        ended = [reported.pop(_ENDED, ()), reported.pop(worker, ())]
        reported[_ENDED] = [metric for metric in merge(ended) if metric.type in _LASTING]
        self._reported = reported

    def count_restart(self) -> None:
        self._restarts.inc()


def _combination(kind: str, sample: str) -> Callable[[float, float], float]:
    if sample.endswith(_CREATED) or sample in _LOWEST:
        return min
    return max if kind == "info" or sample in _HIGHEST else add
