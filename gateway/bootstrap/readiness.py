"""Whether the services that a process needs answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.adapters.ops_server import OK, failing
from gateway.adapters.service_metrics import ServiceMetrics
from gateway.bootstrap.services import WIRE_NAMES
from gateway.config.schema import ServiceName

_TIMEOUT: Final = 2.0
_INTERVAL: Final = timedelta(seconds=15)
# What access by URLs and access by directories take besides the catalog.
_MODES: Final = ((ServiceName.SNAPSHOT, ServiceName.PRESIGN), (ServiceName.VENDING,))

log = logging.getLogger(__name__)


class Readiness:
    """Asks each service's health over the channel that requests take, and shows who answers elsewhere."""

    def __init__(
        self,
        channels: Mapping[ServiceName, aio.Channel],
        elsewhere: Collection[ServiceName],
        metrics: ServiceMetrics,
        interval: timedelta = _INTERVAL,
    ) -> None:
        self._elsewhere = elsewhere
        self._metrics = metrics
        self._interval = interval
        self._stubs: dict[ServiceName, Any] = {
            name: health_pb2_grpc.HealthStub(channel) for name, channel in channels.items()
        }

    async def __call__(self) -> Mapping[str, str]:
        found = await asyncio.gather(*(self._check(name) for name in self._stubs))
        states = dict(zip((name.value for name in self._stubs), found, strict=True))
        for name in self._elsewhere:
            self._metrics.set_reachable(name.value, is_reachable=states[name.value] == OK)
        return states

    async def watch(self) -> None:
        """Ask again and again, so that what is shown holds where nobody asks whether we are ready."""
        while self._elsewhere:
            try:
                await self()
            except Exception:
                log.exception("whether services answer cannot be found out")
            await asyncio.sleep(self._interval.total_seconds())

    async def _check(self, name: ServiceName) -> str:
        request = health_pb2.HealthCheckRequest(service=WIRE_NAMES[name])
        try:
            answer = await self._stubs[name].Check(request, timeout=_TIMEOUT)
        except aio.AioRpcError as exc:
            return f"does not answer: {exc.code().name}"
        serving = answer.status == health_pb2.HealthCheckResponse.SERVING
        return OK if serving else "does not serve"


def missing(states: Mapping[str, str]) -> Sequence[str]:
    """Return the services for want of which a process serves nothing.

    Either access mode is enough to go on: were the edge not ready for want of one, both would be gone.
    """
    serves = any(all(states.get(name) == OK for name in mode) for mode in _MODES)
    return () if serves and states.get(ServiceName.CATALOG, OK) == OK else failing(states)
