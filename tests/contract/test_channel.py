"""One behaviour, every carrier: the same calls by the local channel, a unix socket, TCP and mutual TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from grpc import StatusCode, aio

from gateway import errors
from gateway.config.schema import ServicesConfig, TlsConfig
from gateway.rpc.dial import dial
from gateway.rpc.local import LocalChannel
from gateway.rpc.metadata import request_id_of
from gateway.rpc.peer import Peer, peer_of
from gateway.rpc.server import listen, network_server
from gateway.rpc.status import STATUS, to_error
from gateway.v1 import snapshot_pb2 as pb
from gateway.v1 import snapshot_pb2_grpc
from tests.certificates import new_authority
from tests.fakes.metrics import FakeRpcMetrics

PAGES = 5
# Each for a call that has not reached the servicer within the one before: most do within the first.
DEADLINES = (0.1, 1, 10, 60)


@dataclass
class Servicer(snapshot_pb2_grpc.SnapshotServicer):
    """Does as the grant says."""

    peers: list[Peer] = field(default_factory=list)
    request_ids: list[str] = field(default_factory=list)
    remaining: list[float | None] = field(default_factory=list)
    pages_made: int = 0
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    raises: Exception | None = None

    async def GetVersion(self, request, context):
        self.peers.append(peer_of(context))
        self.request_ids.append(request_id_of(context))
        self.remaining.append(context.time_remaining())
        if self.raises:
            raise self.raises
        if request.grant == "hang":
            await self._hang()
        return pb.GetVersionResponse(version=7)

    async def GetMetadata(self, request, context):
        return pb.GetMetadataResponse()

    async def Query(self, request, context):
        for number in range(PAGES):
            if request.grant == f"fail at {number}" and self.raises:
                raise self.raises
            if request.grant == f"hang at {number}":
                await self._hang()
            self.pages_made += 1
            yield pb.QueryResponse(page=pb.FilePage(files=number))

    async def Changes(self, request, context):
        raise errors.Unsupported("no changes")
        yield

    async def _hang(self) -> None:
        self.hanging.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@dataclass
class Carrier:
    stub: snapshot_pb2_grpc.SnapshotAsyncStub
    servicer: Servicer
    metrics: FakeRpcMetrics
    channel: aio.Channel


@asynccontextmanager
async def local(directory: Path) -> AsyncIterator[Carrier]:
    servicer, metrics = Servicer(), FakeRpcMetrics()
    channel = LocalChannel(metrics)
    snapshot_pb2_grpc.add_SnapshotServicer_to_server(servicer, channel.as_server())
    yield _carrier(channel.as_channel(), servicer, metrics)


def unix(directory: Path):
    return _network(f"unix:{directory}/s", lambda port: f"unix:{directory}/s", None, None)


def tcp(directory: Path):
    return _network("127.0.0.1:0", lambda port: f"127.0.0.1:{port}", None, None)


def mtls(directory: Path):
    authority = new_authority(directory / "pki")
    return _network(
        "127.0.0.1:0", lambda port: f"127.0.0.1:{port}", authority.issue("snapshot"), authority.issue("edge")
    )


@asynccontextmanager
async def _network(
    address: str, target: Callable[[int], str], server_tls: TlsConfig | None, client_tls: TlsConfig | None
) -> AsyncIterator[Carrier]:
    servicer, metrics = Servicer(), FakeRpcMetrics()
    settings = ServicesConfig(listen=address, tls=server_tls)
    server = network_server(settings, metrics)
    snapshot_pb2_grpc.add_SnapshotServicer_to_server(servicer, server)
    port = await listen(server, settings, ())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop, None)
        channel = dial(target(port), client_tls)
        stack.push_async_callback(channel.close)
        yield _carrier(channel, servicer, metrics)


def _carrier(channel: aio.Channel, servicer: Servicer, metrics: FakeRpcMetrics) -> Carrier:
    return Carrier(snapshot_pb2_grpc.SnapshotStub(channel), servicer, metrics, channel)


@pytest.fixture(params=[local, unix, tcp, mtls], ids=lambda carrier: carrier.__name__)
async def carrier(request, tmp_path_factory) -> AsyncIterator[Carrier]:
    # A unix socket's path has about a hundred bytes.
    async with request.param(tmp_path_factory.mktemp("c")) as opened:
        yield opened


async def test_a_call_is_answered_and_counted(carrier):
    answer = await carrier.stub.GetVersion(pb.GetVersionRequest(grant="g"))

    assert answer.version == 7
    assert carrier.metrics.calls == [("/gateway.v1.Snapshot/GetVersion", "OK")]


async def test_metadata_arrives(carrier):
    await carrier.stub.GetVersion(pb.GetVersionRequest(), metadata=(("x-request-id", "r-1"),))

    assert carrier.servicer.request_ids == ["r-1"]


async def test_a_deadline_is_passed_on(carrier):
    await carrier.stub.GetVersion(pb.GetVersionRequest(), timeout=60)

    (remaining,) = carrier.servicer.remaining
    assert remaining is not None
    assert 0 < remaining <= 60.1


@pytest.mark.parametrize("error", STATUS, ids=lambda error: error.__name__)
async def test_an_error_keeps_its_class_code_and_message(carrier, error):
    carrier.servicer.raises = error("the thing 'ü' is wrong")

    with pytest.raises(aio.AioRpcError) as caught:
        await carrier.stub.GetVersion(pb.GetVersionRequest())

    again = to_error(caught.value)
    assert type(again) is error
    assert again.message == "the thing 'ü' is wrong"
    assert again.error_code == error.default_code
    assert carrier.metrics.calls[-1] == ("/gateway.v1.Snapshot/GetVersion", STATUS[error].name)


async def test_an_error_code_of_its_own_is_kept(carrier):
    carrier.servicer.raises = errors.InvalidArgument("bad", error_code=errors.MALFORMED_REQUEST)

    with pytest.raises(aio.AioRpcError) as caught:
        await carrier.stub.GetVersion(pb.GetVersionRequest())

    assert to_error(caught.value).error_code == "MALFORMED_REQUEST"


async def test_how_long_to_wait_is_kept(carrier):
    carrier.servicer.raises = errors.Throttled("slow down", retry_after=timedelta(seconds=7))

    with pytest.raises(aio.AioRpcError) as caught:
        await carrier.stub.GetVersion(pb.GetVersionRequest())

    error = to_error(caught.value)
    assert isinstance(error, errors.Throttled)
    assert error.retry_after == timedelta(seconds=7)


async def test_the_unforeseen_says_nothing(carrier, caplog):
    carrier.servicer.raises = ValueError("secret detail")

    with pytest.raises(aio.AioRpcError) as caught:
        await carrier.stub.GetVersion(pb.GetVersionRequest())

    error = to_error(caught.value)
    assert isinstance(error, errors.Internal)
    assert "secret" not in str(caught.value.details())
    assert "secret detail" in caplog.text


async def test_a_deadline_that_passes_stops_the_servicer(carrier):
    for seconds in DEADLINES:
        with pytest.raises(aio.AioRpcError) as caught:
            await carrier.stub.GetVersion(pb.GetVersionRequest(grant="hang"), timeout=seconds)
        assert caught.value.code() is StatusCode.DEADLINE_EXCEEDED
        assert isinstance(to_error(caught.value), errors.Unavailable)
        if carrier.servicer.hanging.is_set():
            break

    await asyncio.wait_for(carrier.servicer.cancelled.wait(), 60)


async def test_a_caller_that_is_cancelled_stops_the_servicer(carrier):
    async def call():
        return await carrier.stub.GetVersion(pb.GetVersionRequest(grant="hang"))

    task = asyncio.create_task(call())
    await asyncio.wait_for(carrier.servicer.hanging.wait(), 60)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(carrier.servicer.cancelled.wait(), 60)


async def test_a_stream_arrives_in_order(carrier):
    pages = [message.page.files async for message in carrier.stub.Query(pb.QueryRequest())]

    assert pages == list(range(PAGES))


async def test_a_failure_in_mid_stream_comes_after_what_was_sent(carrier):
    carrier.servicer.raises = errors.Unsupported("cannot go on")
    pages: list[int] = []

    with pytest.raises(aio.AioRpcError) as caught:
        await drain(carrier.stub.Query(pb.QueryRequest(grant="fail at 3")), pages)

    assert pages == [0, 1, 2]
    assert isinstance(to_error(caught.value), errors.Unsupported)


async def test_a_stream_that_is_cancelled_stops_the_servicer(carrier):
    call = carrier.stub.Query(pb.QueryRequest(grant="hang at 2"))
    messages = aiter(call)
    assert (await anext(messages)).page.files == 0
    assert (await anext(messages)).page.files == 1
    waiting = asyncio.create_task(anext(messages))
    await asyncio.wait_for(carrier.servicer.hanging.wait(), 60)
    waiting.cancel()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(carrier.servicer.cancelled.wait(), 60)


async def test_a_deadline_within_a_stream_ends_it(carrier):
    pages: list[int] = []
    for seconds in DEADLINES:
        with pytest.raises(aio.AioRpcError) as caught:
            await drain(carrier.stub.Query(pb.QueryRequest(grant="hang at 1"), timeout=seconds), pages)
        assert caught.value.code() is StatusCode.DEADLINE_EXCEEDED
        if pages:
            break

    assert pages == [0]


async def test_the_peer_is_known_as_far_as_the_carrier_vouches(carrier, request):
    await carrier.stub.GetVersion(
        pb.GetVersionRequest(), metadata=(("authorization", "Bearer some.jwt.here"),)
    )

    (peer,) = carrier.servicer.peers
    name = request.node.callspec.id
    assert peer.local == (name == "local")
    assert ("spiffe://sluice.test/edge" in peer.certificate_names) == (name == "mtls")
    assert peer.bearer == ("" if peer.local else "some.jwt.here")
    assert "some.jwt" not in repr(peer)


async def drain(messages, pages: list[int]) -> None:
    async for message in messages:
        # What came before a failure counts.
        pages.append(message.page.files)  # noqa: PERF401 -- a comprehension would lose it
