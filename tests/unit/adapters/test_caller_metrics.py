from __future__ import annotations

from prometheus_client import CollectorRegistry

from gateway.adapters.caller_metrics import PrometheusCallerMetrics


def test_refused_calls_are_counted_by_caller_and_reason():
    registry = CollectorRegistry()
    metrics = PrometheusCallerMetrics(registry)

    for reason in ("rate", "rate", "method"):
        metrics.count_refused_call("billing", reason)
    metrics.count_refused_call("", "identity")

    def value(caller: str, reason: str) -> float | None:
        labels = {"caller": caller, "reason": reason}
        return registry.get_sample_value("sluice_rpc_refused_calls_total", labels)

    assert (value("billing", "rate"), value("billing", "method"), value("", "identity")) == (2, 1, 1)
