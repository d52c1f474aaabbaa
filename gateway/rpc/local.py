"""A grpc.aio channel without a socket: generated stubs in front, servicers behind.

One object takes the place of the server, for ``add_XServicer_to_server``, and of the channel, for
``XStub``. Messages pass by reference: a sender may not change one afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from typing import Any, NoReturn, cast

from grpc import StatusCode, aio

from gateway.ports import RpcMetrics
from gateway.rpc.metadata import Metadata
from gateway.rpc.status import OUR_METHODS, Handler, guard

LOCAL_PEER = "local:"


class LocalChannel:
    """Runs each call as a plain await on the caller's event loop."""

    def __init__(self, metrics: RpcMetrics) -> None:
        self._metrics = metrics
        self._handlers: dict[str, Handler] = {}

    def as_server(self) -> aio.Server:
        return cast("aio.Server", self)

    def as_channel(self) -> aio.Channel:
        return cast("aio.Channel", self)

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Do nothing: the same handlers arrive by name in the next call."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        for name, handler in handlers.items():
            method = f"/{service}/{name}"
            ours = method.startswith(OUR_METHODS)
            self._handlers[method] = guard(handler, method, self._metrics) if ours else handler

    def unary_unary(self, method: str, **_: object) -> Callable[..., Any]:
        async def call(request: Any, *, timeout: float | None = None, metadata: Metadata = ()) -> Any:
            context = _Context(metadata, timeout)
            work = self._handler(method).unary_unary(request, context)
            try:
                waits_for = work.send(None)
            except StopIteration as done:
                # Most calls never wait, and a timer for each would cost as much as they do.
                return done.value
            try:
                async with asyncio.timeout(timeout):
                    return await _Resumed(work, waits_for)
            except TimeoutError:
                await context.abort(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")

        return call

    def unary_stream(self, method: str, **_: object) -> Callable[..., LocalStream]:
        def call(request: Any, *, timeout: float | None = None, metadata: Metadata = ()) -> LocalStream:
            context = _Context(metadata, timeout)
            return LocalStream(self._handler(method).unary_stream(request, context), context)

        return call

    async def close(self, grace: float | None = None) -> None:
        self._handlers.clear()

    def _handler(self, method: str) -> Handler:
        handler = self._handlers.get(method)
        if handler is None:
            raise _rpc_error(StatusCode.UNIMPLEMENTED, "Method not found!")
        return handler


class _Resumed:
    """The rest of a coroutine that has come to wait for something."""

    def __init__(self, work: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        waits_for = self._waits_for
        while True:
            try:
                try:
                    sent = yield waits_for
                except BaseException as exc:  # noqa: BLE001 -- a cancellation is the coroutine's to handle
                    waits_for = self._work.throw(exc)
                else:
                    waits_for = self._work.send(sent)
            except StopIteration as done:
                return done.value


class LocalStream:
    """The messages of one call, taken one at a time; the servicer does nothing in between."""

    def __init__(self, messages: AsyncGenerator[Any], context: _Context) -> None:
        self._messages = messages
        self._context = context
        self._cancelled = False
        self._reading = False

    def __aiter__(self) -> LocalStream:
        return self

    async def __anext__(self) -> Any:
        if self.cancelled():
            raise asyncio.CancelledError
        self._reading = True
        try:
            # Per message: held across the yield, a timeout would cancel the caller's own code.
            async with asyncio.timeout(self._context.time_remaining()):
                message = await anext(self._messages)
        except TimeoutError:
            await self._context.abort(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        finally:
            self._reading = False
        if self.cancelled():
            await self._messages.aclose()
            raise asyncio.CancelledError
        return message

    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> bool:
        """Stop the servicer where it stands; like grpc.aio's, it may be called at any time."""
        if self._cancelled:
            return False
        self._cancelled = True
        if not self._reading:
            # The generator's own clean-up may have to wait for something, which cancel() cannot.
            task = asyncio.ensure_future(self._messages.aclose())
            _closing.add(task)
            task.add_done_callback(_closing.discard)
        return True


# The loop keeps only weak references to tasks.
_closing: set[asyncio.Future[None]] = set()


class _Context:
    """The part of a servicer context that our servicers use."""

    def __init__(self, metadata: Metadata, timeout: float | None) -> None:
        self._metadata = metadata
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def invocation_metadata(self) -> Metadata:
        return self._metadata

    def peer(self) -> str:
        return LOCAL_PEER

    def auth_context(self) -> Mapping[str, list[bytes]]:
        return {}

    def time_remaining(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0)

    async def abort(self, code: StatusCode, details: str = "", trailing_metadata: Metadata = ()) -> NoReturn:
        raise _rpc_error(code, details, trailing_metadata)


def _rpc_error(code: StatusCode, details: str, trailing_metadata: Metadata = ()) -> aio.AioRpcError:
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata(*trailing_metadata), details)
