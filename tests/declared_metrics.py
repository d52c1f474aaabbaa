"""Every metric that some process declares, by the registries that the processes are made of."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Metric

from gateway.adapters.caller_metrics import PrometheusCallerMetrics
from gateway.adapters.certificate_metrics import CertificateMetrics
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.metrics import PrometheusMetrics
from gateway.adapters.service_metrics import ServiceMetrics
from gateway.adapters.shipping_metrics import PrometheusShippingMetrics
from gateway.adapters.snapshot_metrics import PrometheusSnapshotMetrics
from gateway.adapters.token_metrics import TokenMetrics
from gateway.adapters.url_metrics import UrlMetrics
from gateway.adapters.work_metrics import PrometheusQueueMetrics, PrometheusWorkMetrics
from gateway.adapters.worker_metrics import WorkerMetrics
from gateway.ports import utcnow

_SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
    "info": ("_info",),
    "gauge": ("",),
}


def declared_metrics() -> Mapping[str, str]:
    """Return the type of each family of ours, by the name that it has in the documentation."""
    return {name: metric.type for name, metric in _families().items()}


def declared_series() -> set[str]:
    """Return the names of all series that a process may show, with the suffixes of their kinds."""
    return {f"{metric.name}{suffix}" for metric in _families().values() for suffix in _SUFFIXES[metric.type]}


def _families() -> Mapping[str, Metric]:
    registry = PrometheusMetrics(version="1").registry
    credentials = CredentialMetrics(registry)
    credentials.set_redis(is_up=True)
    UrlMetrics(registry)
    PrometheusSnapshotMetrics(registry)
    PrometheusShippingMetrics(registry)
    PrometheusQueueMetrics(registry)
    PrometheusWorkMetrics(registry)
    PrometheusCallerMetrics(registry)
    CertificateMetrics(registry)
    ServiceMetrics(registry)
    TokenMetrics(registry, dict, utcnow)
    found = [*registry.collect(), *_supervisor().collect()]
    return {_documented(metric): metric for metric in found if metric.name.startswith("sluice_")}


def _supervisor() -> CollectorRegistry:
    return WorkerMetrics(lambda: 1).registry


def _documented(metric: Metric) -> str:
    suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
    return f"{metric.name}{suffix}"
