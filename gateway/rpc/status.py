"""Errors to gRPC statuses and back, and the guard that stands around every servicer method."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any, Final, NoReturn

import grpc
from grpc import StatusCode, aio

from gateway import errors
from gateway.ports import RpcMetrics
from gateway.rpc.metadata import current_request_id, request_id_of

STATUS: Final[dict[type[errors.GatewayError], StatusCode]] = {
    errors.InvalidArgument: StatusCode.INVALID_ARGUMENT,
    errors.Unauthenticated: StatusCode.UNAUTHENTICATED,
    errors.PermissionDenied: StatusCode.PERMISSION_DENIED,
    errors.NotFound: StatusCode.NOT_FOUND,
    errors.Unsupported: StatusCode.FAILED_PRECONDITION,
    errors.Throttled: StatusCode.RESOURCE_EXHAUSTED,
    errors.Unavailable: StatusCode.UNAVAILABLE,
    errors.DeadlineExceeded: StatusCode.DEADLINE_EXCEEDED,
    errors.Internal: StatusCode.INTERNAL,
}
# Trailing metadata. A status without the first was made by the transport, not by a service.
ERROR_CODE: Final = "sluice-error-code"
RETRY_AFTER_MS: Final = "sluice-retry-after-ms"
# What gRPC itself understands of it: a negative number forbids to try again.
RETRY_PUSHBACK: Final = "grpc-retry-pushback-ms"
# When to come back to a service that does not answer: by then another replica is called, or has started.
_COME_BACK: Final = timedelta(seconds=1)
# The services that are ours; health and reflection keep their own ways.
OUR_PACKAGE: Final = "gateway.v1."
OUR_METHODS: Final = f"/{OUR_PACKAGE}"

_NO_RETRY: Final = "-1"
# What ends a call from outside. All else is a fault, a panic of native code too, which is no ``Exception``.
_LEAVING: Final = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)

_ERROR: Final = {status: error for error, status in STATUS.items()}

Context = aio.ServicerContext[Any, Any]
Handler = Any  # grpc._utilities.RpcMethodHandler, a namedtuple that grpc does not export.

log = logging.getLogger(__name__)


def guard(handler: Handler, method: str, metrics: RpcMetrics) -> Handler:
    """Return the handler with its exceptions turned into statuses, and its calls counted."""
    if handler.unary_unary:
        return handler._replace(unary_unary=_guard_unary(handler.unary_unary, method, metrics))
    if handler.unary_stream:
        return handler._replace(unary_stream=_guard_stream(handler.unary_stream, method, metrics))
    raise TypeError("client-streaming methods are not used in this project")


class OurInterceptor(aio.ServerInterceptor, ABC):
    """Wraps our handlers on a grpc.aio server, and nobody else's."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not method.startswith(OUR_METHODS):
            return handler
        return self.wrap(handler, method)

    @abstractmethod
    def wrap(self, handler: Handler, method: str) -> Handler:
        """Return what is called in the handler's place."""


class GuardInterceptor(OurInterceptor):
    """Guards our handlers."""

    def __init__(self, metrics: RpcMetrics) -> None:
        self._metrics = metrics

    def wrap(self, handler: Handler, method: str) -> Handler:
        return guard(handler, method, self._metrics)


def to_error(exc: aio.AioRpcError) -> errors.GatewayError:
    """Return the error that a service raised, as far as its status tells."""
    trailing = dict(exc.trailing_metadata() or ())
    code = trailing.get(ERROR_CODE)
    message = exc.details() or ""
    if code is None:
        return errors.Unavailable(_transport_message(exc.code()), retry_after=_COME_BACK)
    if exc.code() is StatusCode.RESOURCE_EXHAUSTED:
        wait = timedelta(milliseconds=int(trailing.get(RETRY_AFTER_MS, 1000)))
        return errors.Throttled(message, retry_after=wait)
    if exc.code() is StatusCode.UNAVAILABLE and RETRY_AFTER_MS in trailing:
        wait = timedelta(milliseconds=int(trailing[RETRY_AFTER_MS]))
        return errors.Unavailable(message, error_code=str(code), retry_after=wait)
    return _ERROR.get(exc.code(), errors.Internal)(message, error_code=str(code))


def _transport_message(code: StatusCode) -> str:
    if code is StatusCode.DEADLINE_EXCEEDED:
        return "the request took longer than the gateway allows; try again later"
    return "a service of the gateway does not answer; try again later"


def _guard_unary(
    method: Callable[[Any, Context], Awaitable[Any]], name: str, metrics: RpcMetrics
) -> Callable[[Any, Context], Awaitable[Any]]:
    async def guarded(request: Any, context: Context) -> Any:
        begin = _Begun(context)
        try:
            answer = await method(request, context)
        except _LEAVING:
            begin.observe(metrics, name, StatusCode.CANCELLED)
            raise
        except BaseException as exc:  # noqa: BLE001 -- the one place that turns the unforeseen into a status
            error = _known(exc, name)
        else:
            begin.observe(metrics, name, StatusCode.OK)
            return answer
        begin.observe(metrics, name, STATUS[type(error)])
        return await _abort(context, error)

    return guarded


def _guard_stream(
    method: Callable[[Any, Context], AsyncGenerator[Any]], name: str, metrics: RpcMetrics
) -> Callable[[Any, Context], AsyncIterator[Any]]:
    async def guarded(request: Any, context: Context) -> AsyncIterator[Any]:
        begin = _Begun(context)
        try:
            async with aclosing(method(request, context)) as messages:
                async for message in messages:
                    yield message
        except _LEAVING:
            begin.observe(metrics, name, StatusCode.CANCELLED)
            raise
        except BaseException as exc:  # noqa: BLE001 -- the one place that turns the unforeseen into a status
            error = _known(exc, name)
        else:
            begin.observe(metrics, name, StatusCode.OK)
            return
        begin.observe(metrics, name, STATUS[type(error)])
        await _abort(context, error)

    return guarded


class _Begun:
    """A call that has begun: its request id stands in the log lines, its time is counted."""

    def __init__(self, context: Context) -> None:
        self._started = time.perf_counter()
        if request_id := request_id_of(context):
            current_request_id.set(request_id)

    def observe(self, metrics: RpcMetrics, method: str, code: StatusCode) -> None:
        metrics.observe_rpc(method, code.name, timedelta(seconds=time.perf_counter() - self._started))


def _known(exc: BaseException, method: str) -> errors.GatewayError:
    if isinstance(exc, errors.GatewayError):
        return exc
    log.error("unhandled error in %s", method, exc_info=exc)
    return errors.Internal("internal error")


async def _abort(context: Context, error: errors.GatewayError) -> NoReturn:
    trailing = [(ERROR_CODE, error.error_code)]
    if isinstance(error, errors.Throttled | errors.Unavailable) and error.retry_after is not None:
        # Rounded up: who waits exactly so long is not refused again.
        wait = -(-error.retry_after // timedelta(milliseconds=1))
        trailing.append((RETRY_AFTER_MS, str(wait)))
        # Whoever has asked to be called less often is not helped by gRPC's own, quick, second attempt.
        trailing.append((RETRY_PUSHBACK, _NO_RETRY))
    await context.abort(STATUS[type(error)], error.message, tuple(trailing))
