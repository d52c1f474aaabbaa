"""Metrics of the platform services that call."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class PrometheusCallerMetrics:
    """The port ``CallerMetrics``. Callers are labels by their configured names, of which there are few."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refused = Counter(
            "sluice_rpc_refused_calls",
            "Calls of platform services that were not admitted, by caller and reason.",
            ("caller", "reason"),
            registry=registry,
        )
        # The only one that needs no caller's name: there from the start, so that none is 0 and not missing.
        self._refused.labels("", "identity")

    def count_refused_call(self, caller: str, reason: str) -> None:
        self._refused.labels(caller, reason).inc()
