"""What platform services meet at a listener: quotas, deadlines, retries and renewed certificates."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway import errors
from gateway.config.schema import ServicesConfig, TlsConfig
from gateway.domain.allowance import Allowance
from gateway.domain.principal import Principal
from gateway.domain.rate import Rate
from gateway.ports import utcnow
from gateway.rpc.admission import Gate
from gateway.rpc.certificates import Certificates
from gateway.rpc.dial import dial, open_channel
from gateway.rpc.rate import LocalBuckets
from gateway.rpc.renewing import RenewingChannel
from gateway.rpc.server import Health, listen, network_server
from gateway.rpc.status import to_error
from gateway.v1 import snapshot_pb2 as pb
from gateway.v1 import snapshot_pb2_grpc
from tests.certificates import Authority, new_authority
from tests.fakes.callers import FakeCallerMetrics, service
from tests.fakes.catalog_store import FakeCatalogStore
from tests.fakes.metrics import FakeRpcMetrics

SERVICE = "gateway.v1.Snapshot"
TIMEOUT = timedelta(seconds=30)
PAGES = 3


@dataclass
class Servicer(snapshot_pb2_grpc.SnapshotServicer):
    """Fails as often as it is told to, and then answers."""

    failures: list[Exception] = field(default_factory=list)
    calls: int = 0
    # Streams wait for it after their first page.
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def GetVersion(self, request, context):
        self.calls += 1
        if request.grant == "hang":
            await asyncio.Event().wait()
        if self.failures:
            raise self.failures.pop()
        return pb.GetVersionResponse(version=self.calls)

    async def Query(self, request, context):
        self.calls += 1
        if request.grant != "late" and self.failures:
            raise self.failures.pop()
        yield pb.QueryResponse(page=pb.FilePage(files=1))
        if request.grant == "late" and self.failures:
            raise self.failures.pop()
        await self.go_on.wait()
        for _ in range(PAGES - 1):
            yield pb.QueryResponse(page=pb.FilePage(files=1))


@dataclass
class Listener:
    """A server, and channels to it."""

    stack: AsyncExitStack
    authority: Authority
    servicer: Servicer = field(default_factory=Servicer)
    metrics: FakeCallerMetrics = field(default_factory=FakeCallerMetrics)
    health: Health = field(default_factory=Health)
    certificates: dict[str, Principal] = field(default_factory=dict)

    async def start(self, tls: TlsConfig | None = None, **settings: Any) -> None:
        tls = tls or self.authority.issue("snapshot")
        config = ServicesConfig(listen="127.0.0.1:0", tls=tls, **settings)
        store = FakeCatalogStore(certificates=self.certificates)
        gate = Gate(store, LocalBuckets(utcnow), self.metrics, None, utcnow)
        self.server = network_server(config, FakeRpcMetrics(), gate)
        snapshot_pb2_grpc.add_SnapshotServicer_to_server(self.servicer, self.server)
        self.health.register(self.server)
        await self.health.serve(SERVICE)
        self.shown = Certificates(tls)
        port = await listen(self.server, config, (SERVICE,), self.shown)
        self.address = f"127.0.0.1:{port}"
        self.stack.push_async_callback(self.server.stop, None)

    def channel(self, name: str = "billing") -> aio.Channel:
        channel = dial(self.address, self.authority.issue(name))
        self.stack.push_async_callback(channel.close)
        return channel

    def stub(self, name: str = "billing") -> snapshot_pb2_grpc.SnapshotAsyncStub:
        return snapshot_pb2_grpc.SnapshotStub(self.channel(name))

    def renewing(self, tls: TlsConfig) -> tuple[RenewingChannel, Certificates]:
        certificates = Certificates(tls)

        def opened(material):
            return open_channel(self.address, material, TIMEOUT)

        renewing = RenewingChannel(opened, certificates)
        self.stack.push_async_callback(renewing.close)
        return renewing, certificates


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
    async with asyncio.timeout(5):
        while not await answers(stub):
            await asyncio.sleep(0.01)


async def answers(stub: Any) -> bool:
    try:
        await stub.GetVersion(pb.GetVersionRequest())
    except aio.AioRpcError:
        return False
    return True


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

    async with asyncio.timeout(30):
        assert [news.status async for news in watch] == [health_pb2.HealthCheckResponse.NOT_SERVING]
    assert not await answers(listener.stub("other"))
    listener.servicer.go_on.set()
    assert len([message async for message in stream]) == PAGES - 1
    # At once: nobody is left to wait for.
    async with asyncio.timeout(30):
        await stopping


@dataclass
class Traffic:
    """Calls one after the other, counted by how they end."""

    stub: snapshot_pb2_grpc.SnapshotAsyncStub
    answered: int = 0
    failed: list[aio.AioRpcError] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            try:
                await self.stub.GetVersion(pb.GetVersionRequest(), timeout=10)
                self.answered += 1
            except aio.AioRpcError as exc:
                self.failed.append(exc)
            await asyncio.sleep(0)

    async def another(self, calls: int = 20) -> None:
        """Wait until so many more were answered."""
        enough = self.answered + calls
        async with asyncio.timeout(30):
            while self.answered < enough and not self.failed:
                await asyncio.sleep(0.01)


@dataclass
class Rotation:
    """The files of both sides, each with a copy of the authorities that it trusts."""

    server: TlsConfig
    client: TlsConfig

    def trust(self, *authorities: Authority) -> None:
        bundle = b"".join(authority.ca.read_bytes() for authority in authorities)
        for tls in (self.server, self.client):
            Path(tls.ca).write_bytes(bundle)

    def issue(self, authority: Authority) -> None:
        for name, tls in (("snapshot", self.server), ("edge", self.client)):
            fresh = authority.issue(name)
            shutil.copy(fresh.certificate, tls.certificate)
            shutil.copy(fresh.key, tls.key)


@pytest.fixture
async def rotation(listener, tmp_path) -> Rotation:
    """A listener whose files are copies, so that they can be replaced."""
    sides = [
        TlsConfig(**{key: str(tmp_path / f"{side}.{key}") for key in ("certificate", "key", "ca")})
        for side in ("server", "client")
    ]
    rotation = Rotation(*sides)
    rotation.trust(listener.authority)
    rotation.issue(listener.authority)
    await listener.start(tls=rotation.server)
    return rotation


async def test_an_authority_is_replaced_under_calls_and_none_fails(listener, rotation, tmp_path):
    old, new = listener.authority, new_authority(tmp_path / "new")
    channel, certificates = listener.renewing(rotation.client)
    traffic = Traffic(snapshot_pb2_grpc.SnapshotStub(channel.as_channel()))
    calling = asyncio.create_task(traffic.run())

    # First both sides trust both, then they show the new one, then they trust the old one no more.
    for trusted, shown in (((old, new), old), ((old, new), new), ((new,), new)):
        await traffic.another()
        rotation.trust(*trusted)
        rotation.issue(shown)
        assert listener.shown.renew()
        assert certificates.renew()
        assert await channel.renew()
    await traffic.another()
    calling.cancel()

    assert traffic.failed == []
    assert not await answers(listener.stub("edge")), "a certificate of the old authority is still taken"


async def test_connections_that_work_are_not_left_for_a_certificate_that_nobody_trusts(
    listener, rotation, tmp_path
):
    channel, certificates = listener.renewing(rotation.client)
    stub = snapshot_pb2_grpc.SnapshotStub(channel.as_channel())
    assert await answers(stub)

    rotation.issue(new_authority(tmp_path / "new"))
    assert certificates.renew()
    assert not await channel.renew()
    assert await answers(stub)

    rotation.issue(listener.authority)
    assert certificates.renew()
    assert await channel.renew()
    assert await answers(stub)


async def test_a_stream_under_way_outlives_the_connections_that_are_replaced(listener, rotation):
    channel, certificates = listener.renewing(rotation.client)
    stub = snapshot_pb2_grpc.SnapshotStub(channel.as_channel())
    stream = aiter(stub.Query(pb.QueryRequest()))
    await anext(stream)

    rotation.issue(listener.authority)
    assert certificates.renew()
    assert await channel.renew()
    assert await answers(stub)
    listener.servicer.go_on.set()

    assert len([message async for message in stream]) == PAGES - 1
