"""Metrics and health over HTTP, on a port of their own."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from typing import Final, cast

from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest

from gateway.errors import InvalidArgument, Unavailable

log = logging.getLogger(__name__)

# What each needed service answers: ``ok``, or why it cannot serve.
Readiness = Callable[[], Awaitable[Mapping[str, str]]]
# Of these answers, the services without which nothing can be served.
Missing = Callable[[Mapping[str, str]], Sequence[str]]

OK: Final = "ok"
READY_TIMEOUT: Final = timedelta(seconds=5)
_LISTEN: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]]*):(?P<port>\d{1,5})")
_MAX_PORT: Final = 65535
_JSON: Final = "application/json"
_INDEX: Final = """\
/metrics  what to measure, for Prometheus
/healthz  200 while the process runs
/readyz   200 while it can serve, else what is missing
"""
# How aiohttp is told to keep no access log, whatever its types say.
_NO_LOG: Final = cast("logging.Logger", None)


def failing(services: Mapping[str, str]) -> Sequence[str]:
    """Return the services that cannot serve."""
    return sorted(name for name, state in services.items() if state != OK)


class OpsServer:
    """Answers ``/metrics``, ``/healthz`` and ``/readyz``, and ``/`` with the list of these."""

    def __init__(
        self,
        registry: CollectorRegistry,
        ready: Readiness,
        *,
        missing: Missing = failing,
        timeout: timedelta = READY_TIMEOUT,
    ) -> None:
        self._registry = registry
        self._ready = ready
        self._missing = missing
        self._timeout = timeout
        self._draining = False
        # host:port, once it listens.
        self.address = ""

    def drain(self) -> None:
        """Answer from now on that the process is not ready, so that no new requests are sent to it."""
        self._draining = True

    def app(self) -> web.Application:
        app = web.Application(middlewares=[_errors_as_json])
        app.on_response_prepare.append(_finish_headers)
        app.router.add_get("/", self._index)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._readiness)
        return app

    async def _index(self, _: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = _encoder(",".join(request.headers.getall(hdrs.ACCEPT, [])))
        # In a thread: with many series this takes longer than requests should wait.
        body = await asyncio.to_thread(encode, self._registry)
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})

    async def _health(self, _: web.Request) -> web.Response:
        return _json({"status": OK})

    async def _readiness(self, _: web.Request) -> web.Response:
        if self._draining:
            return _json({"status": "shutting down", "services": {}}, status=503)
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                services = dict(await self._ready())
        except TimeoutError:
            return _json({"status": "not ready: the check took too long", "services": {}}, status=503)
        except Exception:
            log.exception("the check for readiness failed")
            return _json({"status": "not ready: the check failed", "services": {}}, status=503)
        if missing := self._missing(services):
            return _json({"status": f"not ready: {', '.join(missing)}", "services": services}, status=503)
        without = failing(services)
        return _json({"status": f"without {', '.join(without)}" if without else OK, "services": services})


@asynccontextmanager
async def serve_ops(
    listen: str, registry: CollectorRegistry, ready: Readiness, missing: Missing = failing
) -> AsyncIterator[OpsServer]:
    """Serve on ``host:port`` until the block is left; port 0 takes a free one."""
    host, port = parse_listen(listen)
    server = OpsServer(registry, ready, missing=missing)
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        listener = await _listening(runner, host, port, listen)
        try:
            server.address = _address(listener.sockets[0].getsockname())
            yield server
        finally:
            listener.close()
    finally:
        await runner.cleanup()


def parse_listen(text: str) -> tuple[str, int]:
    """Return host and port of ``host:port``, ``[ipv6]:port`` or ``:port``, which is every interface."""
    match = _LISTEN.fullmatch(text)
    if match is None or int(match["port"]) > _MAX_PORT:
        raise InvalidArgument(f"an address to listen on looks like 127.0.0.1:9401, not {text!r}")
    return match["host"].strip("[]"), int(match["port"])


class _Connection(web.RequestHandler):
    """A connection whose errors are in JSON too, even of what is not HTTP at all."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= web.HTTPInternalServerError.status_code:
            log.error("a request to the metrics port failed", exc_info=exc)
        reason = HTTPStatus(status).phrase
        response = _BareResponse(text=_body({"status": reason}), status=status, content_type=_JSON)
        response.force_close()
        return response


class _BareResponse(web.Response):
    """An answer outside of the application, whose signals do not reach it."""

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        self.headers.popall(hdrs.SERVER, None)


async def _listening(runner: web.AppRunner, host: str, port: int, listen: str) -> asyncio.Server:
    loop = asyncio.get_running_loop()

    def connection() -> _Connection:
        if runner.server is None:
            raise RuntimeError("the server is shutting down")
        return _Connection(runner.server, loop=loop, access_log=_NO_LOG)

    try:
        return await loop.create_server(connection, host or None, port, reuse_address=True)
    except OSError as exc:
        raise Unavailable(_cannot_listen(listen, exc)) from exc


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        # A version that is not made of numbers.
        return generate_latest, CONTENT_TYPE_PLAIN_0_0_4


def _cannot_listen(listen: str, exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return f"{listen} is taken by another program; choose another metrics.listen"
    return f"cannot listen on {listen}: {exc.strerror or exc}"


def _address(name: tuple[object, ...] | str) -> str:
    host, port = str(name[0]), name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as exc:
        response = _json({"status": exc.reason}, status=exc.status)
        if allowed := exc.headers.get(hdrs.ALLOW):
            response.headers[hdrs.ALLOW] = allowed
        return response


async def _finish_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.popall(hdrs.SERVER, None)
    response.headers[hdrs.CACHE_CONTROL] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"


def _json(content: Mapping[str, object], *, status: int = 200) -> web.Response:
    return web.Response(text=_body(content), status=status, content_type=_JSON)


def _body(content: Mapping[str, object]) -> str:
    return json.dumps(content) + "\n"
