"""The health service of a process."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

HEALTH_SERVICE: Final[str] = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name


class Health:
    """Each service of the process serves, until the process is asked to stop."""

    def __init__(self) -> None:
        self._servicer = _HealthServicer()

    def register(self, server: aio.Server) -> None:
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def serve(self, service: str) -> None:
        await self._servicer.set(service, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        """Say that nothing serves any more, which ends the streams of those who watch."""
        self._servicer.is_stopping = True
        await self._servicer.enter_graceful_shutdown()


class _HealthServicer(health_aio.HealthServicer):  # type: ignore[misc]  # grpc_health has no types
    """Ends a watcher's stream with the news of the end: a server that stops would wait for it."""

    is_stopping = False

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Any) -> None:  # noqa: N802
        with suppress(_ToldOfTheEndError):
            await super().Watch(request, _Watcher(self, context))


class _Watcher:
    """The part of a servicer context that the health service uses."""

    def __init__(self, servicer: _HealthServicer, context: Any) -> None:
        self._servicer = servicer
        self._context = context

    async def write(self, message: health_pb2.HealthCheckResponse) -> None:
        await self._context.write(message)
        if self._servicer.is_stopping:
            raise _ToldOfTheEndError


class _ToldOfTheEndError(Exception):
    """A watcher has nothing more to wait for."""
