"""The gRPC listener of a process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
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
from gateway.rpc.admission import AdmissionInterceptor, Gate
from gateway.rpc.certificates import Certificates
from gateway.rpc.deadline import STREAM_LIMIT, DeadlineInterceptor
from gateway.rpc.status import GuardInterceptor
from gateway.rpc.tls import server_credentials

# A request is read whole before anybody is asked who it is. The largest is a page of paths, of 2 MiB; the
# hints of a query are as long as ``http.bodyLimit``, of 1 MiB.
MAX_REQUEST_BYTES: Final = 8 * 1024 * 1024
HEALTH_SERVICE = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name


class Health:
    """The health service of a process: each of its services serves, until the process is asked to stop."""

    def __init__(self) -> None:
        self._servicer = _HealthServicer()

    @property
    def is_watched(self) -> bool:
        """Tell whether somebody is waiting to hear that a service stops."""
        return self._servicer.watchers > 0

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
    watchers = 0

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Any) -> None:  # noqa: N802
        self.watchers += 1
        try:
            with suppress(_ToldOfTheEndError):
                await super().Watch(request, _Watcher(self, context))
        finally:
            self.watchers -= 1


class _Watcher:
    """The part of a servicer context that the health service uses."""

    def __init__(self, servicer: _HealthServicer, context: Any) -> None:
        self._servicer = servicer
        self._context = context

    async def write(self, message: health_pb2.HealthCheckResponse) -> None:
        await self._context.write(message)
        # The process may begin to stop while SERVING is written: NOT_SERVING is still to come.
        if self._servicer.is_stopping and message.status != health_pb2.HealthCheckResponse.SERVING:
            raise _ToldOfTheEndError


class _ToldOfTheEndError(Exception):
    """A watcher has nothing more to wait for."""


def network_server(settings: ServicesConfig, metrics: RpcMetrics, gate: Gate | None = None) -> aio.Server:
    """Return a server that is not listening yet; without a gate it admits whomever the transport does."""
    age = settings.max_connection_age // timedelta(milliseconds=1)
    admission = [] if gate is None else [AdmissionInterceptor(gate)]
    return aio.server(
        # The first stands around the others: whatever they raise becomes a status, and is counted.
        interceptors=[GuardInterceptor(metrics), *admission, DeadlineInterceptor(settings.timeout)],
        options=[
            ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
            # Clients come back by name after this long, and so find new replicas.
            ("grpc.max_connection_age_ms", age),
            # For streams that have begun by then: as long as one may take.
            ("grpc.max_connection_age_grace_ms", STREAM_LIMIT // timedelta(milliseconds=1)),
            # A port that is taken is an error, not a second listener.
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ],
    )


async def listen(
    server: aio.Server,
    settings: ServicesConfig,
    services: Sequence[str],
    certificates: Certificates | None = None,
) -> int:
    """Start to listen where the settings say, and return the port; refuse to do so unprotected.

    Whoever gives certificates may renew them; otherwise those of the settings are read once.
    """
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
            shown = certificates or Certificates(settings.tls)
            port = server.add_secure_port(settings.listen, server_credentials(shown))
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
