from __future__ import annotations

from datetime import timedelta

import pytest
from grpc import StatusCode, aio

from gateway import errors
from gateway.rpc.status import STATUS, guard, to_error
from tests.fakes.metrics import FakeRpcMetrics


class Handler:
    unary_unary = None
    unary_stream = None
    stream_unary = stream_stream = object()


def test_every_error_has_one_status_of_its_own():
    assert set(STATUS) == set(errors.GatewayError.__subclasses__())
    assert len(set(STATUS.values())) == len(STATUS)


@pytest.mark.parametrize("code", [code for code in StatusCode if code is not StatusCode.OK])
def test_a_status_without_our_code_came_from_the_transport(code):
    error = to_error(aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), "internal detail"))

    assert isinstance(error, errors.Unavailable)
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


def test_client_streaming_is_refused():
    with pytest.raises(TypeError, match="client-streaming"):
        guard(Handler(), "/gateway.v1.X/Y", FakeRpcMetrics())
