"""Metrics of the services that a process calls."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge


class ServiceMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._reachable = Gauge(
            "sluice_service_reachable",
            "Whether a service that this process calls answered the last time that it was asked.",
            ("service",),
            registry=registry,
        )

    def set_reachable(self, service: str, *, is_reachable: bool) -> None:
        self._reachable.labels(service).set(is_reachable)
