"""The longest that a call may take, whatever its caller asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from gateway.errors import DeadlineExceeded
from gateway.rpc.status import Context, Handler, OurInterceptor

# Of a stream as a whole: its reader sets the pace, and a large table has many pages.
STREAM_LIMIT: Final = timedelta(hours=1)


class DeadlineInterceptor(OurInterceptor):
    """Ends our handlers' work in time. A caller's own deadline, where it is earlier, ends it by itself.

    Both cancel the servicer where it waits, and so whatever it has asked of a port. What callers share, such
    as one reading of a log, goes on for those that still wait.
    """

    def __init__(self, limit: timedelta, stream_limit: timedelta = STREAM_LIMIT) -> None:
        self._limit = limit
        self._stream_limit = stream_limit

    def wrap(self, handler: Handler, method: str) -> Handler:
        if handler.unary_unary:
            return handler._replace(unary_unary=_limit_unary(handler.unary_unary, self._limit))
        limited = _limit_stream(handler.unary_stream, self._limit, self._stream_limit)
        return handler._replace(unary_stream=limited)


def _limit_unary(
    method: Callable[[Any, Context], Awaitable[Any]], limit: timedelta
) -> Callable[[Any, Context], Awaitable[Any]]:
    async def limited(request: Any, context: Context) -> Any:
        async with _until(asyncio.get_running_loop().time() + limit.total_seconds(), limit):
            return await method(request, context)

    return limited


def _limit_stream(
    method: Callable[[Any, Context], AsyncGenerator[Any]], limit: timedelta, stream_limit: timedelta
) -> Callable[[Any, Context], AsyncIterator[Any]]:
    async def limited(request: Any, context: Context) -> AsyncIterator[Any]:
        began = asyncio.get_running_loop().time()
        # The first message is as an answer of its own; after it, the reader has a part in how long it takes.
        until, span = began + min(limit, stream_limit).total_seconds(), limit
        async with aclosing(method(request, context)) as messages:
            while True:
                async with _until(until, span):
                    message = await anext(messages, None)
                if message is None:
                    return
                yield message
                until, span = began + stream_limit.total_seconds(), stream_limit

    return limited


@asynccontextmanager
async def _until(at: float, span: timedelta) -> AsyncIterator[None]:
    """Bound the block; never a yield of the caller's, whose own code it would cancel."""
    try:
        async with asyncio.timeout_at(at) as timer:
            yield
    except TimeoutError as exc:
        if not timer.expired():
            raise
        raise DeadlineExceeded(
            f"the call took longer than the {span.total_seconds():g} s that this service allows"
        ) from exc
