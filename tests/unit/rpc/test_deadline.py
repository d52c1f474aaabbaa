from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from gateway.errors import DeadlineExceeded
from gateway.rpc.deadline import DeadlineInterceptor
from gateway.rpc.status import OUR_METHODS

LONG = timedelta(hours=1)
SHORT = timedelta(milliseconds=20)


async def intercepted(
    handler: Any, limit: timedelta, stream_limit: timedelta = LONG, method: str = ""
) -> Any:
    async def find(_):
        return handler

    details = SimpleNamespace(method=method or f"{OUR_METHODS}Snapshot/Query")
    return await DeadlineInterceptor(limit, stream_limit).intercept_service(find, details)


async def hang(_request, _context):
    await asyncio.Event().wait()


async def test_a_call_that_takes_too_long_is_ended_where_it_waits():
    cancelled = []

    async def work(_request, _context):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    limited = await intercepted(grpc.unary_unary_rpc_method_handler(work), SHORT)

    with pytest.raises(DeadlineExceeded, match=r"0\.02 s"):
        await limited.unary_unary(None, None)
    assert cancelled


async def test_a_timeout_of_the_servicers_own_is_left_as_it_is():
    async def work(_request, _context):
        raise TimeoutError("a store's")

    limited = await intercepted(grpc.unary_unary_rpc_method_handler(work), LONG)

    with pytest.raises(TimeoutError, match="a store's"):
        await limited.unary_unary(None, None)


async def test_a_first_message_has_the_time_of_a_call():
    async def pages(_request, _context):
        await asyncio.Event().wait()
        yield 1

    limited = await intercepted(grpc.unary_stream_rpc_method_handler(pages), SHORT)

    with pytest.raises(DeadlineExceeded):
        await anext(limited.unary_stream(None, None))


async def test_later_messages_have_the_time_of_the_stream():
    async def pages(_request, _context):
        yield 1
        await asyncio.sleep(3 * SHORT.total_seconds())
        yield 2

    limited = await intercepted(grpc.unary_stream_rpc_method_handler(pages), SHORT)

    assert [message async for message in limited.unary_stream(None, None)] == [1, 2]


async def test_a_stream_has_an_end_too():
    async def pages(_request, _context):
        yield 1
        await asyncio.Event().wait()

    limited = await intercepted(grpc.unary_stream_rpc_method_handler(pages), LONG, SHORT)
    messages = limited.unary_stream(None, None)

    assert await anext(messages) == 1
    with pytest.raises(DeadlineExceeded):
        await anext(messages)


async def test_other_services_keep_their_ways():
    handler: Any = grpc.unary_unary_rpc_method_handler(hang)

    assert await intercepted(handler, SHORT, method="/grpc.health.v1.Health/Watch") is handler
