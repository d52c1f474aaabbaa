"""What platform services meet at a listener: quotas, methods, deadlines, retries and health."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway import errors
from gateway.domain.allowance import Allowance
from gateway.domain.principal import Principal
from gateway.domain.rate import Rate
from gateway.rpc.dial import dial
from gateway.rpc.status import to_error
from gateway.v1 import snapshot_pb2 as pb
from gateway.v1 import snapshot_pb2_grpc
from tests.certificates import new_authority
from tests.contract.listener import PAGES, SERVICE, Listener, answers
from tests.fakes.callers import service
from tests.waiting import eventually_async


@pytest.fixture
async def listener(tmp_path) -> AsyncIterator[Listener]:
    async with AsyncExitStack() as stack:
        yield Listener(stack, new_authority(tmp_path / "pki"))


def known_as(name: str, allowance: Allowance) -> dict[str, Principal]:
    return {f"spiffe://sluice.test/{name}": service(name, allowance)}


async def refusal(call: Any) -> aio.AioRpcError:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return caught.value


async def test_a_rate_is_held_and_the_status_says_how_long_to_wait(listener):
    listener.certificates = known_as("billing", Allowance(rate=Rate(requests_per_second=0.01, burst=2)))
    await listener.start()
    stub = listener.stub()

    for _ in range(2):
        await stub.GetVersion(pb.GetVersionRequest())
    error = await refusal(stub.GetVersion(pb.GetVersionRequest()))

    assert error.code() is StatusCode.RESOURCE_EXHAUSTED
    trailing = dict(error.trailing_metadata())
    assert trailing["sluice-error-code"] == "RESOURCE_EXHAUSTED"
    assert 0 < int(trailing["sluice-retry-after-ms"]) <= 100_000
    assert listener.servicer.calls == 2
    assert listener.metrics.refused == [("billing", "rate")]


async def test_a_stream_counts_for_as_long_as_it_is_open(listener):
    listener.certificates = known_as("billing", Allowance(concurrent_calls=1))
    await listener.start()
    stub = listener.stub()
    stream = stub.Query(pb.QueryRequest())
    await anext(aiter(stream))

    error = await refusal(stub.GetVersion(pb.GetVersionRequest()))
    assert error.code() is StatusCode.RESOURCE_EXHAUSTED
    stream.cancel()
    await eventually_async(lambda: answers(stub))


async def test_a_method_that_is_not_listed_is_refused_on_streams_too(listener):
    listener.certificates = known_as("billing", Allowance(methods=frozenset({"Snapshot.GetVersion"})))
    await listener.start()
    stub = listener.stub()

    await stub.GetVersion(pb.GetVersionRequest())
    error = await refusal(anext(aiter(stub.Query(pb.QueryRequest()))))

    assert error.code() is StatusCode.PERMISSION_DENIED
    assert dict(error.trailing_metadata())["sluice-error-code"] == "SERVICE_REFUSED"


async def test_health_asks_for_no_principal(listener):
    listener.certificates = known_as("billing", Allowance(methods=frozenset()))
    await listener.start()
    request = health_pb2.HealthCheckRequest(service=SERVICE)

    answer = await health_pb2_grpc.HealthStub(listener.channel("stranger")).Check(request)

    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("timeout", [None, 86_400], ids=["none", "a day"])
async def test_a_call_has_the_servers_deadline_when_its_own_is_missing_or_absurd(listener, timeout):
    await listener.start(timeout=timedelta(milliseconds=200))

    error = await refusal(listener.stub().GetVersion(pb.GetVersionRequest(grant="hang"), timeout=timeout))

    assert error.code() is StatusCode.DEADLINE_EXCEEDED
    assert isinstance(to_error(error), errors.DeadlineExceeded)


async def test_the_service_config_gives_calls_a_deadline(listener):
    await listener.start(timeout=timedelta(hours=1))
    channel = dial(listener.address, listener.authority.issue("billing"), timedelta(milliseconds=200))
    listener.stack.push_async_callback(channel.close)

    error = await refusal(
        snapshot_pb2_grpc.SnapshotStub(channel).GetVersion(pb.GetVersionRequest(grant="hang"))
    )

    assert error.code() is StatusCode.DEADLINE_EXCEEDED


async def test_a_call_that_finds_no_service_is_tried_again(listener):
    await listener.start()
    listener.servicer.failures = [errors.Unavailable("down"), errors.Unavailable("down")]

    assert (await listener.stub().GetVersion(pb.GetVersionRequest())).version == 3


@pytest.mark.parametrize(
    "failure",
    [
        errors.Throttled("slow down"),
        errors.Internal("ours"),
        errors.DeadlineExceeded("late"),
        # The dependency has asked for a pause.
        errors.Unavailable("busy", retry_after=timedelta(seconds=5)),
    ],
    ids=lambda failure: failure.message,
)
async def test_what_was_answered_is_not_tried_again(listener, failure):
    await listener.start()
    listener.servicer.failures = [failure]

    error = await refusal(listener.stub().GetVersion(pb.GetVersionRequest()))

    assert type(to_error(error)) is type(failure)
    assert listener.servicer.calls == 1


async def test_a_stream_is_tried_again_before_its_first_message(listener):
    await listener.start()
    listener.servicer.failures = [errors.Unavailable("down")]
    listener.servicer.go_on.set()

    pages = [message async for message in listener.stub().Query(pb.QueryRequest())]

    assert (len(pages), listener.servicer.calls) == (PAGES, 2)


async def test_a_stream_is_not_tried_again_after_its_first_message(listener):
    await listener.start()
    listener.servicer.failures = [errors.Unavailable("down")]
    stream = aiter(listener.stub().Query(pb.QueryRequest(grant="late")))

    await anext(stream)
    error = await refusal(anext(stream))

    assert error.code() is StatusCode.UNAVAILABLE
    assert listener.servicer.calls == 1


async def test_retries_stop_when_most_calls_fail(listener):
    await listener.start()
    stub = listener.stub()
    listener.servicer.failures = [errors.Unavailable("down") for _ in range(1000)]

    for _ in range(5):
        await asyncio.gather(*(refusal(stub.GetVersion(pb.GetVersionRequest())) for _ in range(30)))

    # A hundred failures empty half of the bucket; from then on each call is one attempt.
    assert listener.servicer.calls < 150 + 100 + 10


async def test_a_watcher_sees_the_end_while_calls_under_way_finish(listener):
    await listener.start()
    watched = health_pb2.HealthCheckRequest(service=SERVICE)
    watch = aiter(health_pb2_grpc.HealthStub(listener.channel()).Watch(watched))
    assert (await anext(watch)).status == health_pb2.HealthCheckResponse.SERVING
    stream = aiter(listener.stub().Query(pb.QueryRequest()))
    await anext(stream)

    await listener.health.stop()
    stopping = asyncio.create_task(listener.server.stop(3600))

    async with asyncio.timeout(60):
        assert [news.status async for news in watch] == [health_pb2.HealthCheckResponse.NOT_SERVING]
    assert not await answers(listener.stub("other"))
    listener.servicer.go_on.set()
    assert len([message async for message in stream]) == PAGES - 1
    # At once: nobody is left to wait for.
    async with asyncio.timeout(60):
        await stopping
