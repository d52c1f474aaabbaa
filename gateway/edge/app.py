"""The REST edge as an application: routes, one middleware around them, and the headers of every answer."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from aiohttp import hdrs, web

from gateway.domain.local_url import PATH_PREFIX
from gateway.domain.rate import Rate
from gateway.edge.abort import abort
from gateway.edge.compression import Compression
from gateway.edge.documentation import Documentation
from gateway.edge.errors import Fault, StreamAborted, answer, fault_of
from gateway.edge.exchange import OK, Edge, Exchange
from gateway.edge.lists import ListRenderer
from gateway.edge.rate import RateLimiter
from gateway.edge.request_id import request_id_from
from gateway.edge.routes import ROUTES, Route
from gateway.edge.settings import EdgePorts, EdgeSettings, Files, Services
from gateway.ports import HttpMetrics
from gateway.rpc.metadata import REQUEST_ID, current_request_id
from gateway.rpc.rate import LocalBuckets

__all__ = ["EdgePorts", "EdgeSettings", "Files", "Rate", "Services", "build"]

# The client went away before it had its answer; no standard status says so.
_GONE: Final = Fault(status=499, error_code="CLIENT_GONE", message="the client closed the connection")
_UNMATCHED: Final = "unmatched"
# A label has few values, whatever clients send.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_Endpoint = Callable[[web.Request], Awaitable[web.StreamResponse]]
_request_id: Final = web.RequestKey("request_id", str)
_path: Final = web.RequestKey("path", str)
_exchange: Final = web.RequestKey("exchange", Exchange)
_route: Final = web.RequestKey("route", Route)


def build(settings: EdgeSettings, services: Services, ports: EdgePorts) -> web.Application:
    """Return the application that serves the protocol below the prefix."""
    compression = Compression(enabled=settings.compresses)
    edge = Edge(
        settings=settings,
        services=services,
        ports=ports,
        limiter=RateLimiter(settings.rate_of, ports.buckets or LocalBuckets(ports.clock)),
        lists=ListRenderer(),
        compression=compression,
    )
    app = web.Application(client_max_size=settings.body_limit, middlewares=[_observing(ports.metrics)])
    app.on_response_prepare.append(_finish_headers)
    app.on_cleanup.append(lambda _: compression.close())
    for route in ROUTES:
        ports.metrics.show_http(route.path, route.method)
        app.router.add_route(route.method, settings.base_path + route.pattern, _endpoint(edge, route))
    _add_open_routes(app, settings, ports)
    return app


def _add_open_routes(app: web.Application, settings: EdgeSettings, ports: EdgePorts) -> None:
    """Add what needs no bearer token."""
    documentation = Documentation(settings)

    def add(method: str, path: str, handler: _Endpoint, pattern: str = "") -> None:
        ports.metrics.show_http(path, method)
        app.router.add_route(method, settings.base_path + (pattern or path), _labelled(path, handler))

    add("GET", "/openapi.json", documentation.openapi)
    add("GET", "/docs", documentation.page)
    if ports.files is not None:
        for method in ("GET", "HEAD"):
            path = f"/{PATH_PREFIX}/{{storage}}/"
            add(method, path + "{path}", ports.files.handle, path + "{path:.+}")


def _endpoint(edge: Edge, route: Route) -> _Endpoint:
    async def endpoint(request: web.Request) -> web.StreamResponse:
        request[_path] = route.path
        request[_route] = route
        exchange = request[_exchange] = Exchange(edge, request, route.operation, request[_request_id])
        exchange.authenticate()
        response = await route.handler(exchange)
        if isinstance(response, web.Response) and not route.is_secret:
            await edge.compression.compress(response, request.headers.getall(hdrs.ACCEPT_ENCODING, ()))
        return response

    return endpoint


def _labelled(path: str, handler: _Endpoint) -> _Endpoint:
    async def endpoint(request: web.Request) -> web.StreamResponse:
        request[_path] = path
        return await handler(request)

    return endpoint


def _observing(metrics: HttpMetrics) -> Callable[..., Awaitable[web.StreamResponse]]:
    @web.middleware
    async def observe(request: web.Request, handler: _Endpoint) -> web.StreamResponse:
        """Answer whatever goes wrong, then count the request and keep what became of it."""
        started = time.perf_counter()
        request[_request_id] = request_id_from(request.headers.get(REQUEST_ID))
        current_request_id.set(request[_request_id])
        fault: Fault | None = _GONE
        response: web.StreamResponse | None = None
        try:
            response, fault = await _answered(request, handler)
        except StreamAborted as exc:
            fault = exc.fault
            raise
        finally:
            _observe(metrics, request, response, fault, time.perf_counter() - started)
        return response

    return observe


async def _answered(request: web.Request, handler: _Endpoint) -> tuple[web.StreamResponse, Fault | None]:
    """Return the answer, and what went wrong where something did."""
    try:
        return await handler(request), None
    except ConnectionError:
        raise
    except Exception as exc:
        fault = fault_of(exc)
        if request.writer.output_size > 0:
            # What was sent cannot be taken back, and an answer behind it would look like more of it.
            abort(request.transport)
            raise StreamAborted(fault) from exc
        route = request.get(_route)
        return (answer if route is None else route.answer_fault)(fault), fault


def _observe(
    metrics: HttpMetrics,
    request: web.Request,
    response: web.StreamResponse | None,
    fault: Fault | None,
    seconds: float,
) -> None:
    exchange = request.get(_exchange)
    # An answer that we cut off ourselves ends like one that its client left: with a cancelled handler.
    fault = (exchange and exchange.late_fault) or fault
    status = _GONE.status if response is None else response.status
    if fault is not None:
        status = fault.status
    method = request.method if request.method in _METHODS else "OTHER"
    metrics.observe_http(request.get(_path, _UNMATCHED), method, status, timedelta(seconds=seconds))
    if status == web.HTTPTooManyRequests.status_code:
        metrics.count_throttled()
    if exchange is not None:
        if exchange.principal:
            metrics.count_recipient(exchange.principal, status)
        exchange.note(status, fault.error_code if fault else OK)


async def _finish_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.popall(hdrs.SERVER, None)
    response.headers["X-Content-Type-Options"] = "nosniff"
    if request_id := request.get(_request_id):
        response.headers[REQUEST_ID] = request_id
