"""Tells when the certificates end that a process shows to other servers and services."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from gateway.adapters.certificate import first_expiry
from gateway.adapters.metrics import PrometheusMetrics
from gateway.config.schema import Config, ServiceName

# Only these have a connection to Redis.
_CACHING: Final = frozenset({ServiceName.PRESIGN, ServiceName.VENDING})


def show_certificates(config: Config, run: Collection[ServiceName], metrics: PrometheusMetrics) -> None:
    """Show what is loaded now; that of the REST listener is told by who loads it."""
    for use, file in _presented(config, run):
        expires_at = first_expiry(Path(file))
        if expires_at is not None:
            metrics.set_certificate_expiry(use, expires_at)


def _presented(config: Config, run: Collection[ServiceName]) -> Iterator[tuple[str, str]]:
    if config.services.tls is not None:
        yield "services", config.services.tls.certificate
    redis = config.cache.redis
    if not _CACHING.isdisjoint(run) and redis is not None and redis.tls is not None and redis.tls.certificate:
        yield "redis", redis.tls.certificate
