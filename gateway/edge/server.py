"""The HTTP listener: what may connect, how slow it may be, and how bad HTTP is answered."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import hdrs, web
from aiohttp.http_exceptions import LineTooLong

from gateway.edge.abort import abort
from gateway.edge.errors import Fault, answer, fault_of
from gateway.errors import MALFORMED_REQUEST, Unavailable

_MAX_HEADERS: Final = 100
_BACKLOG: Final = 1024
# How long a refused client may go on sending before the connection is closed on it.
_LINGER_SECONDS: Final = 2.0
# How many headers of the largest size a head may amount to before it is complete.
_HEAD_LIMITS: Final = 4
_TOO_LONG: Final = Fault(
    status=431, error_code=MALFORMED_REQUEST, message="the request line or the headers are too long"
)
_TOO_MANY: Final = Fault(
    status=503,
    error_code=Unavailable.default_code,
    message="too many connections; try again later",
    headers={hdrs.RETRY_AFTER: "1"},
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one client, and all of them together, may take of a listener."""

    # Of the request line, and of each header.
    header_limit: int = 16 * 1024
    # From the connection, or from the first byte of a later request, to the end of its head.
    header_timeout: timedelta = timedelta(seconds=10)
    # How long a client may leave a piece of its answer untaken.
    write_timeout: timedelta = timedelta(seconds=60)
    keep_alive: timedelta = timedelta(seconds=75)
    max_connections: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where to listen: a host and a port, 0 for any, or sockets that are bound already."""

    host: str = "127.0.0.1"
    port: int = 0
    sockets: tuple[socket.socket, ...] = ()
    ssl_context: ssl.SSLContext | None = None


@asynccontextmanager
async def serve(
    app: web.Application, listen: Listen, limits: Limits, *, grace: timedelta = timedelta(seconds=30)
) -> AsyncIterator[int]:
    """Serve, and give the port; when the block is left, finish what is under way, for so long at most."""
    runner = web.AppRunner(
        app,
        handle_signals=False,
        access_log=None,
        handler_cancellation=True,
        # The runner waits twice for so long: for handlers to end, and once more after telling them to.
        shutdown_timeout=grace.total_seconds() / 2,
    )
    await runner.setup()
    try:
        servers = await _listen(cast("web.Server", runner.server), listen, limits)
        first = servers[0].sockets[0]
        try:
            yield first.getsockname()[1] if _is_inet(first) else 0
        finally:
            for server in servers:
                server.close()
    finally:
        await runner.cleanup()


def close_connections(app: web.Application, is_leaving: Callable[[], bool]) -> None:
    """Have the connection of every answer closed behind it from when the process is about to stop.

    Whoever holds one open then would send a next request into its end.
    """

    async def close(_: web.Request, response: web.StreamResponse) -> None:
        if is_leaving():
            response.force_close()
            response.headers[hdrs.CONNECTION] = "close"

    app.on_response_prepare.append(close)


def cannot_listen(host: str, port: int, exc: OSError) -> Unavailable:
    """Return the error that says why, and what to do about it."""
    return Unavailable(f"cannot listen on {host}:{port}: {_reason(exc)}")


async def _listen(manager: web.Server, listen: Listen, limits: Limits) -> Sequence[asyncio.Server]:
    loop = asyncio.get_running_loop()
    open_connections: set[Connection] = set()

    def connect() -> Connection:
        return Connection(manager, loop, limits, open_connections)

    options: dict[str, Any] = {"backlog": _BACKLOG}
    if listen.ssl_context is not None:
        options |= {
            "ssl": listen.ssl_context,
            "ssl_handshake_timeout": limits.header_timeout.total_seconds(),
        }
    if listen.sockets:
        return [await loop.create_server(connect, sock=sock, **options) for sock in listen.sockets]
    try:
        return [await loop.create_server(connect, listen.host, listen.port, **options)]
    except OSError as exc:
        raise cannot_listen(listen.host, listen.port, exc) from exc


class Connection(web.RequestHandler):
    """aiohttp's protocol, with the time limits that it lacks and errors in our own form."""

    def __init__(
        self,
        manager: web.Server,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        open_connections: set[Connection],
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=limits.keep_alive.total_seconds(),
            access_log=None,  # type: ignore[arg-type]  # None is how aiohttp spells "no access log"
            max_line_size=limits.header_limit,
            max_field_size=limits.header_limit,
            max_headers=_MAX_HEADERS,
            lingering_time=_LINGER_SECONDS,
            auto_decompress=False,
        )
        self._limits = limits
        self._open_connections = open_connections
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connected = cast("asyncio.Transport", transport)
        if len(self._open_connections) >= self._limits.max_connections:
            _refuse(connected, _TOO_MANY)
            return
        self._open_connections.add(self)
        # Pause as soon as the kernel takes no more, so that every stall is noticed and nothing piles up.
        connected.set_write_buffer_limits(high=1, low=0)
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._open_connections.discard(self)
        self._head_arrived()
        self._taken()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        requests = self._request_count
        super().data_received(data)
        if self._request_count != requests:
            self._head_arrived()
        elif data and not self._request_in_progress and not self._messages:
            if self._head_timer is None:
                self._expect_head()
            self._head_bytes += len(data) if self._waiter is not None else 0
            if self._head_bytes > _HEAD_LIMITS * self._limits.header_limit and self.transport is not None:
                _refuse(self.transport, _TOO_LONG)
                self.force_close()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.transport is not None:
            # The transport, not this object: a closed connection that is not drained must end too.
            self._stall_timer = self._loop.call_later(
                self._limits.write_timeout.total_seconds(), abort, self.transport
            )

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        if isinstance(resp, web.HTTPException) and resp.status >= web.HTTPBadRequest.status_code:
            resp = answer(fault_of(resp))
        return await super().finish_response(request, resp, start_time)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what never became a request of ours, or failed outside of the application."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer had begun already")
        response = _BareResponse.of(_protocol_fault(status, exc))
        response.force_close()
        return response

    def _expect_head(self) -> None:
        delay = self._limits.header_timeout.total_seconds()
        self._head_timer = self._loop.call_later(delay, self._head_is_late)

    def _head_is_late(self) -> None:
        # Not waiting for a head: what came was the rest of a body that nobody wanted.
        self._head_timer = None
        if self._waiter is not None:
            self.force_close()

    def _head_arrived(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _taken(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


class _BareResponse(web.Response):
    """An answer outside of the application, whose signals do not reach it."""

    @classmethod
    def of(cls, fault: Fault) -> _BareResponse:
        made = answer(fault)
        return cls(status=made.status, body=made.body, headers=made.headers)

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        self.headers.popall(hdrs.SERVER, None)
        self.headers["X-Content-Type-Options"] = "nosniff"


def _protocol_fault(status: int, exc: BaseException | None) -> Fault:
    if status >= web.HTTPInternalServerError.status_code:
        return fault_of(exc if isinstance(exc, Exception) else RuntimeError(f"status {status}"))
    log.debug("a request was not valid HTTP", exc_info=exc)
    if isinstance(exc, LineTooLong):
        return _TOO_LONG
    return Fault(status=status, error_code=MALFORMED_REQUEST, message="the request is not valid HTTP")


def _refuse(transport: asyncio.Transport, fault: Fault) -> None:
    """Answer a client that is not even listened to."""
    made = answer(fault)
    head = [f"HTTP/1.1 {fault.status} {HTTPStatus(fault.status).phrase}", "Connection: close"]
    head += [f"{name}: {value}" for name, value in made.headers.items()]
    body = made.body if isinstance(made.body, bytes) else b""
    transport.write("\r\n".join([*head, f"{hdrs.CONTENT_LENGTH}: {len(body)}", "", ""]).encode() + body)
    transport.close()


def _is_inet(sock: Any) -> bool:
    return sock.family in {socket.AF_INET, socket.AF_INET6}


def _reason(exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return "the port is taken; stop what uses it or choose another one"
    return exc.strerror or str(exc)
