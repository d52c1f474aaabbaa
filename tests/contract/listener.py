"""A listener as platform services meet it, with a servicer behind it that fails when told to."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from grpc import aio

from gateway.config.schema import ServicesConfig, TlsConfig
from gateway.domain.principal import Principal
from gateway.ports import utcnow
from gateway.rpc.admission import Gate
from gateway.rpc.certificates import Certificates
from gateway.rpc.dial import dial, open_channel
from gateway.rpc.rate import LocalBuckets
from gateway.rpc.renewing import RenewingChannel
from gateway.rpc.server import Health, listen, network_server
from gateway.v1 import snapshot_pb2 as pb
from gateway.v1 import snapshot_pb2_grpc
from tests.certificates import Authority
from tests.fakes.callers import FakeCallerMetrics
from tests.fakes.catalog_store import FakeCatalogStore
from tests.fakes.metrics import FakeRpcMetrics

SERVICE = "gateway.v1.Snapshot"
TIMEOUT = timedelta(minutes=1)
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


async def answers(stub: Any) -> bool:
    try:
        await stub.GetVersion(pb.GetVersionRequest())
    except aio.AioRpcError:
        return False
    return True
