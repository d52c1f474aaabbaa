"""Prometheus metrics of one process, in a registry of their own."""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.adapters.label_values import OTHER, BoundedValues
from gateway.adapters.recipient_metrics import RecipientMetrics
from gateway.domain.audit import AuditKind
from gateway.domain.validity import Validity

# A path that no route matches.
UNMATCHED: Final = "unmatched"

_HTTP_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_LATENCY: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_LAG: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
# There from the start for every route: a rate does not see what a counter was born with, and would miss the
# first failures; or, where only they were there from the start, take them for all that was asked.
_SHOWN: Final = ("200", "500", "503", "504")
# Far more than there are routes or gRPC methods: a caller that invents values ends up in ``OTHER``.
_MAX_VALUES: Final = 200


class PrometheusMetrics:
    """Counts what the process does. A label is always present and never takes a caller's own words."""

    def __init__(self, *, version: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        build = Info("sluice_build", "What is running.", registry=self.registry)
        build.info({"version": version, "python": platform.python_version()})
        self._http = _RequestMetrics("http", ("route", "method"), "status", self.registry)
        self._rpc = _RequestMetrics("rpc", ("method",), "code", self.registry)
        self._routes = BoundedValues(_MAX_VALUES)
        self._rpc_methods = BoundedValues(_MAX_VALUES)
        self._codes = BoundedValues(_MAX_VALUES)
        self._recipients = RecipientMetrics(self.registry)
        self._throttled = self._counter("throttled_requests", "Requests refused by a rate limit.")
        self._files = self._counter("files_signed", "Files whose URLs were handed out.")
        self._bytes = self._counter("files_signed_bytes", "Size of the files whose URLs were handed out.")
        self._lag = Histogram(
            "sluice_event_loop_lag_seconds",
            "How late the event loop woke a sleeping task.",
            buckets=_LAG,
            registry=self.registry,
        )
        self._certificates = Gauge(
            "sluice_certificate_expiry_timestamp_seconds",
            "When a certificate ends that this process serves or presents.",
            ("use",),
            registry=self.registry,
        )
        self._lives = Gauge(
            "sluice_certificate_life_seconds",
            "How long that certificate lives, from its beginning to its end.",
            ("use",),
            registry=self.registry,
        )
        self._audit = _AuditSeries(self.registry)
        self._reloads = _ReloadSeries(self.registry)

    def show_http(self, route: str, method: str) -> None:
        """Have the series of a route there, at 0, before anybody asks for it."""
        self._http.show((self._routes.admit(route), method), _SHOWN)

    def observe_http(self, route: str, method: str, status: int, elapsed: timedelta) -> None:
        """Count an answered request; ``route`` is a template, empty for a path that matches none."""
        known = self._routes.admit(route or UNMATCHED)
        method = method if method in _HTTP_METHODS else OTHER
        self._http.observe((known, method), str(status), elapsed)

    def observe_rpc(self, method: str, code: str, elapsed: timedelta) -> None:
        self._rpc.observe((self._rpc_methods.admit(method),), self._codes.admit(code), elapsed)

    def count_throttled(self) -> None:
        self._throttled.inc()

    def count_files(self, recipient: str, files: int, size: int) -> None:
        self._files.inc(files)
        self._bytes.inc(size)
        self._recipients.count_files(recipient, files, size)

    def count_credential(self, recipient: str) -> None:
        self._recipients.count_credential(recipient)

    def count_recipient(self, recipient: str, status: int) -> None:
        self._recipients.count_request(recipient, status)

    def set_certificate(self, use: str, validity: Validity) -> None:
        """Tell when a certificate ends that was loaded: not the one that may lie in its file by now."""
        self._certificates.labels(use).set(validity.ends_at.timestamp())
        self._lives.labels(use).set(validity.life.total_seconds())

    def observe_lag(self, lag: timedelta) -> None:
        self._lag.observe(lag.total_seconds())

    def count_audit_event(self, kind: AuditKind) -> None:
        """Count an event that is on disk."""
        self._audit.events.labels(kind).inc()

    def count_audit_failure(self) -> None:
        """Count a write to the audit log that failed, however many events it carried, or a grant that was
        refused as its event had waited for too long.
        """
        self._audit.failures.inc()

    def count_audit_drops(self, events: int) -> None:
        self._audit.drops.inc(events)

    def set_audit_backlog(self, size: int) -> None:
        self._audit.backlog.set(size)

    def watch_audit_wait(self, wait: Callable[[], float]) -> None:
        """Show for how many seconds the oldest event has waited: of a disk that hangs nobody else tells."""
        self._audit.wait.set_function(wait)

    def set_config(self, generation: str, at: datetime) -> None:
        """Name the configuration that came into force; the one before disappears."""
        self._reloads.generation.info({"generation": generation})
        self._reloads.last_success.set(at.timestamp())
        self._reloads.is_current.set(1)

    def count_reload(self, generation: str, at: datetime) -> None:
        """Count a changed configuration that came into force."""
        self._reloads.reloads.labels("success").inc()
        self.set_config(generation, at)

    def count_refused_reload(self) -> None:
        """Count a changed configuration that was refused, so that the old one stays in force."""
        self._reloads.reloads.labels("failure").inc()
        self._reloads.is_current.set(0)

    def _counter(self, name: str, help_text: str) -> Counter:
        return Counter(f"sluice_{name}", help_text, registry=self.registry)


class _RequestMetrics(Collector):
    """Requests by labels and outcome, and their latency by labels alone.

    Plain numbers that the event loop counts up, made into series when they are asked for: the library's own
    counters take a lock each, and a request touches several.
    """

    def __init__(self, kind: str, labels: tuple[str, ...], outcome: str, registry: CollectorRegistry) -> None:
        self._kind = kind
        self._labels = labels
        self._outcome = outcome
        self._requests: dict[tuple[tuple[str, ...], str], int] = {}
        self._latencies: dict[tuple[str, ...], _Latency] = {}
        registry.register(self)

    def show(self, labels: tuple[str, ...], outcomes: Sequence[str]) -> None:
        for outcome in outcomes:
            self._requests.setdefault((labels, outcome), 0)
        self._latencies.setdefault(labels, _Latency())

    def observe(self, labels: tuple[str, ...], outcome: str, elapsed: timedelta) -> None:
        key = labels, outcome
        self._requests[key] = self._requests.get(key, 0) + 1
        latency = self._latencies.get(labels)
        if latency is None:
            latency = self._latencies[labels] = _Latency()
        latency.observe(elapsed.total_seconds())

    def collect(self) -> Iterator[Metric]:
        """Return the series as they stand; called from another thread than ``observe``."""
        requests = CounterMetricFamily(
            f"sluice_{self._kind}_requests", "Requests answered.", labels=(*self._labels, self._outcome)
        )
        for (labels, outcome), count in list(self._requests.items()):
            requests.add_metric((*labels, outcome), count)
        duration = HistogramMetricFamily(
            f"sluice_{self._kind}_request_duration_seconds",
            "From the first byte of a request to the last of its answer.",
            labels=self._labels,
        )
        for labels, latency in list(self._latencies.items()):
            duration.add_metric(labels, latency.buckets(), latency.total)
        yield requests
        yield duration


class _Latency:
    """How many requests took at most so long."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_LATENCY) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(_LATENCY, seconds)] += 1
        self.total += seconds

    def buckets(self) -> Sequence[tuple[str, float]]:
        bounds = (*(str(bound) for bound in _LATENCY), "+Inf")
        return list(zip(bounds, accumulate(self._counts), strict=True))


class _AuditSeries:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.events = Counter("sluice_audit_events", "Audit events on disk.", ("kind",), registry=registry)
        self.failures = Counter("sluice_audit_failures", "Audit writes that failed.", registry=registry)
        self.drops = Counter("sluice_audit_dropped_events", "Audit events lost unwritten.", registry=registry)
        self.backlog = Gauge(
            "sluice_audit_backlog_bytes", "Audit events that wait to be written.", registry=registry
        )
        self.wait = Gauge(
            "sluice_audit_oldest_wait_seconds",
            "How long the oldest event that is not on disk has waited.",
            registry=registry,
        )
        for kind in AuditKind:
            self.events.labels(kind)


class _ReloadSeries:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.reloads = Counter(
            "sluice_config_reloads", "Changed configurations, by outcome.", ("outcome",), registry=registry
        )
        self.last_success = Gauge(
            "sluice_config_last_reload_success_timestamp_seconds",
            "When the configuration in force was loaded.",
            registry=registry,
        )
        self.is_current = Gauge(
            "sluice_config_last_reload_successful",
            "Whether the configuration in force is the last that was read.",
            registry=registry,
        )
        self.generation = Info("sluice_config_generation", "The configuration in force.", registry=registry)
        for outcome in ("success", "failure"):
            self.reloads.labels(outcome)
