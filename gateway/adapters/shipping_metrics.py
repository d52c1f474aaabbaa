"""Metrics of shipped audit segments."""

from __future__ import annotations

from datetime import timedelta

from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.adapters.audit_shipping import ShippingFailure


class PrometheusShippingMetrics:
    """Of several processes that share a directory the one that ships tells what waits."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._segments = Counter("sluice_audit_shipped_segments", "Segments shipped.", registry=registry)
        self._bytes = Counter("sluice_audit_shipped_bytes", "Size of segments shipped.", registry=registry)
        self._failures = Counter(
            "sluice_audit_shipping_failures", "Attempts that failed.", ("reason",), registry=registry
        )
        self._backlog = Gauge(
            "sluice_audit_shipping_backlog_bytes", "Closed segments that wait.", registry=registry
        )
        self._age = Gauge(
            "sluice_audit_shipping_backlog_age_seconds", "How long the oldest has waited.", registry=registry
        )
        for failure in ShippingFailure:
            self._failures.labels(failure)

    def count_shipped(self, size: int) -> None:
        self._segments.inc()
        self._bytes.inc(size)

    def count_shipping_failure(self, failure: ShippingFailure) -> None:
        self._failures.labels(failure).inc()

    def set_shipping_backlog(self, size: int, age: timedelta) -> None:
        self._backlog.set(size)
        self._age.set(age.total_seconds())
