from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from grpc import StatusCode, aio

from gateway import errors
from gateway.rpc.status import STATUS, guard, to_error
from tests.cases import each_case
from tests.fakes.metrics import FakeRpcMetrics


class Handler:
    unary_unary: Any = None
    unary_stream: Any = None
    stream_unary = stream_stream = object()


def test_every_error_has_one_status_of_its_own():
    assert set(STATUS) == set(errors.GatewayError.__subclasses__())
    assert len(set(STATUS.values())) == len(STATUS)


@each_case("code", [code for code in StatusCode if code is not StatusCode.OK])
def test_a_status_without_our_code_came_from_the_transport(code):
    error = to_error(aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), "internal detail"))

    assert isinstance(error, errors.Unavailable)
    assert error.retry_after == timedelta(seconds=1)
    assert "internal detail" not in error.message


def test_a_status_that_we_never_send_is_internal():
    trailing = aio.Metadata(("sluice-error-code", "X"))

    error = to_error(aio.AioRpcError(StatusCode.DATA_LOSS, aio.Metadata(), trailing, "odd"))

    assert isinstance(error, errors.Internal)


@pytest.mark.parametrize(
    ("trailing", "wait"), [((), None), ((("sluice-retry-after-ms", "2500"),), timedelta(seconds=2.5))]
)
def test_a_dependency_that_asks_for_fewer_calls_says_how_long_to_wait(trailing, wait):
    metadata = aio.Metadata(("sluice-error-code", "TEMPORARILY_UNAVAILABLE"), *trailing)

    error = to_error(aio.AioRpcError(StatusCode.UNAVAILABLE, aio.Metadata(), metadata, "slow down"))

    assert isinstance(error, errors.Unavailable)
    assert (error.message, error.error_code) == ("slow down", "TEMPORARILY_UNAVAILABLE")
    assert error.retry_after == wait


class Panic(BaseException):
    """As native code raises it: no ``Exception``."""


class UnaryHandler(Handler):
    def __init__(self, raised: BaseException) -> None:
        async def method(request, context):
            raise raised

        self.unary_unary = method

    def _replace(self, **changes):
        return changes["unary_unary"]


class StreamHandler(Handler):
    def __init__(self, raised: BaseException) -> None:
        async def method(request, context):
            yield "page"
            raise raised

        self.unary_stream = method

    def _replace(self, **changes):
        async def drain(request, context):
            return [message async for message in changes["unary_stream"](request, context)]

        return drain


class Context:
    def __init__(self) -> None:
        self.aborted: list[StatusCode] = []

    def invocation_metadata(self):
        return ()

    async def abort(self, code, details, trailing_metadata=()):
        self.aborted.append(code)


@pytest.mark.parametrize("handler", [UnaryHandler, StreamHandler])
async def test_a_panic_of_native_code_is_our_fault_and_has_an_answer(handler, caplog):
    context, metrics = Context(), FakeRpcMetrics()

    await guard(handler(Panic("boom")), "/gateway.v1.X/Y", metrics)(None, context)

    assert context.aborted == [StatusCode.INTERNAL]
    assert "unhandled error" in caplog.text


@pytest.mark.parametrize("handler", [UnaryHandler, StreamHandler])
async def test_who_leaves_gets_no_answer(handler):
    context = Context()

    with pytest.raises(asyncio.CancelledError):
        await guard(handler(asyncio.CancelledError()), "/gateway.v1.X/Y", FakeRpcMetrics())(None, context)

    assert context.aborted == []


def test_client_streaming_is_refused():
    with pytest.raises(TypeError, match="client-streaming"):
        guard(Handler(), "/gateway.v1.X/Y", FakeRpcMetrics())
