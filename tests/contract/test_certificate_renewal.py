"""Certificates are renewed under calls, the authority too, and none of the calls fails."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from grpc import aio

from gateway.config.schema import TlsConfig
from gateway.v1 import snapshot_pb2 as pb
from gateway.v1 import snapshot_pb2_grpc
from tests.certificates import Authority, new_authority
from tests.contract.listener import PAGES, Listener, answers
from tests.waiting import eventually_async


@pytest.fixture
async def listener(tmp_path) -> AsyncIterator[Listener]:
    async with AsyncExitStack() as stack:
        yield Listener(stack, new_authority(tmp_path / "pki"))


@dataclass
class Traffic:
    """Calls one after the other, counted by how they end."""

    stub: snapshot_pb2_grpc.SnapshotAsyncStub
    answered: int = 0
    failed: list[aio.AioRpcError] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            try:
                await self.stub.GetVersion(pb.GetVersionRequest(), timeout=60)
                self.answered += 1
            except aio.AioRpcError as exc:
                self.failed.append(exc)
            await asyncio.sleep(0)

    async def another(self, calls: int = 20) -> None:
        """Wait until so many more were answered."""
        enough = self.answered + calls
        await eventually_async(lambda: self.answered >= enough or self.failed)


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


async def test_who_holds_a_certificate_of_a_removed_authority_is_not_called_though_nobody_else_answers(
    listener, rotation, tmp_path
):
    channel, certificates = listener.renewing(rotation.client)
    stub = snapshot_pb2_grpc.SnapshotStub(channel.as_channel())
    assert await answers(stub)
    calls = listener.servicer.calls

    # The listener goes on with what the old authority has signed.
    rotation.trust(new_authority(tmp_path / "new"))
    assert certificates.renew()
    assert await channel.renew()

    assert channel.material is certificates.material
    assert not await answers(stub)
    assert listener.servicer.calls == calls


async def test_calls_come_back_once_the_other_side_shows_a_certificate_of_the_new_authority(
    listener, rotation, tmp_path
):
    channel, certificates = listener.renewing(rotation.client)
    stub = snapshot_pb2_grpc.SnapshotStub(channel.as_channel())
    rotation.trust(new := new_authority(tmp_path / "new"))
    rotation.issue(new)
    assert certificates.renew()
    assert await channel.renew()
    assert not await answers(stub)

    assert listener.shown.renew()
    await eventually_async(lambda: answers(stub), pause=0.05)


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
