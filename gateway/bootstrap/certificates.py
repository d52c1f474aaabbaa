"""Tells when the certificates end that a process shows to other servers and services."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Final, Protocol

from gateway.adapters.certificate import find_validity
from gateway.adapters.metrics import PrometheusMetrics
from gateway.config.schema import Config, ServiceName
from gateway.rpc.certificates import Certificates, Material

# Only these have a connection to Redis.
_CACHING: Final = frozenset({ServiceName.PRESIGN, ServiceName.VENDING})


class Renewing(Protocol):
    """What makes calls with certificates, and goes over to renewed ones."""

    @property
    def material(self) -> Material: ...

    async def renew(self) -> bool: ...


class ServicesCertificates:
    """What this process shows to other services: those that call it, and those that it calls."""

    def __init__(self, certificates: Certificates, metrics: PrometheusMetrics) -> None:
        self._certificates = certificates
        self._metrics = metrics
        self._channels: list[Renewing] = []
        self._show()

    def add(self, channel: Renewing) -> None:
        self._channels.append(channel)

    async def take_up(self) -> bool:
        """Show new connections what the files hold at once; tell whether all of our own calls use it too."""
        await asyncio.to_thread(self._certificates.renew)
        is_in_use = all(await asyncio.gather(*(channel.renew() for channel in self._channels)))
        self._show()
        return is_in_use

    def _show(self) -> None:
        # The first to end of those in use: a channel may wait with an old one while the files are new.
        used = (self._certificates.material, *(channel.material for channel in self._channels))
        self._metrics.set_certificate("services", min(material.validity for material in used))


def show_redis_certificate(config: Config, run: Collection[ServiceName], metrics: PrometheusMetrics) -> None:
    redis = config.cache.redis
    if _CACHING.isdisjoint(run) or redis is None or redis.tls is None or not redis.tls.certificate:
        return
    validity = find_validity(Path(redis.tls.certificate))
    if validity is not None:
        metrics.set_certificate("redis", validity)
