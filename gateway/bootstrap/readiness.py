"""Whether the services that a process needs answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.bootstrap.services import WIRE_NAMES
from gateway.config.schema import ServiceName

_TIMEOUT: Final = 2.0
_OK: Final = "ok"


class Readiness:
    """Asks each service's health over the channel that requests take."""

    def __init__(self, channels: Mapping[ServiceName, aio.Channel]) -> None:
        self._stubs: dict[ServiceName, Any] = {
            name: health_pb2_grpc.HealthStub(channel) for name, channel in channels.items()
        }

    async def __call__(self) -> Mapping[str, str]:
        states = await asyncio.gather(*(self._check(name) for name in self._stubs))
        return dict(zip((name.value for name in self._stubs), states, strict=True))

    async def _check(self, name: ServiceName) -> str:
        request = health_pb2.HealthCheckRequest(service=WIRE_NAMES[name])
        try:
            answer = await self._stubs[name].Check(request, timeout=_TIMEOUT)
        except aio.AioRpcError as exc:
            return f"does not answer: {exc.code().name}"
        serving = answer.status == health_pb2.HealthCheckResponse.SERVING
        return _OK if serving else "does not serve"
