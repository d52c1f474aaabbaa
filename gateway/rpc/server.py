"""The gRPC listener of a process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from gateway.config.address import parse_listener
from gateway.config.schema import ServicesConfig
from gateway.errors import Unavailable, Unsupported
from gateway.ports import RpcMetrics
from gateway.rpc.dial import MAX_MESSAGE_BYTES
from gateway.rpc.status import GuardInterceptor
from gateway.rpc.tls import server_credentials

HEALTH_SERVICE = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
# A connection that is old is left by new calls only: what has begun on it may take as long as an answer may.
_LONGEST_STREAM: Final = timedelta(hours=1)


class Health:
    """The health service of a process: each of its services serves, until the process is asked to stop."""

    def __init__(self) -> None:
        self._servicer = _WatchedHealth()

    @property
    def is_watched(self) -> bool:
        """Tell whether somebody is waiting to hear that a service stops."""
        return self._servicer.watchers > 0

    def register(self, server: aio.Server) -> None:
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def serve(self, service: str) -> None:
        await self._servicer.set(service, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        await self._servicer.enter_graceful_shutdown()


class _WatchedHealth(health_aio.HealthServicer):  # type: ignore[misc]  # it comes without types
    """Counts those who watch."""

    def __init__(self) -> None:
        super().__init__()
        self.watchers = 0

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802 -- named by the proto
        self.watchers += 1
        try:
            await super().Watch(request, context)
        finally:
            self.watchers -= 1


def network_server(settings: ServicesConfig, metrics: RpcMetrics) -> aio.Server:
    """Return a server that is not listening yet."""
    age = settings.max_connection_age // timedelta(milliseconds=1)
    return aio.server(
        interceptors=[GuardInterceptor(metrics)],
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            # Clients come back by name after this long, and so find new replicas.
            ("grpc.max_connection_age_ms", age),
            ("grpc.max_connection_age_grace_ms", _LONGEST_STREAM // timedelta(milliseconds=1)),
            # A port that is taken is an error, not a second listener.
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ],
    )


async def listen(server: aio.Server, settings: ServicesConfig, services: Sequence[str]) -> int:
    """Start to listen where the settings say, and return the port; refuse to do so unprotected."""
    if settings.tls is None and not is_private(settings.listen):
        raise Unsupported(
            f"services.listen: {settings.listen} is not on loopback, so it needs services.tls (mutual TLS)"
        )
    if settings.reflection:
        reflection.enable_server_reflection((*services, HEALTH_SERVICE, reflection.SERVICE_NAME), server)
    try:
        if settings.tls is None:
            port = server.add_insecure_port(settings.listen)
        else:
            port = server.add_secure_port(settings.listen, server_credentials(settings.tls))
    except RuntimeError as exc:
        raise Unavailable(f"services.listen: {settings.listen} cannot be listened on; is it taken?") from exc
    await server.start()
    return port


def is_private(listen_address: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return parse_listener(listen_address).is_private
    except ValueError:
        return False
