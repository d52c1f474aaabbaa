"""The journal of a service has what is in its hands, and who is told of its health."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.rpc.server import Health
from tests.integration.fleet.journal import CALL, Journal, JournalReader
from tests.integration.fleet.journaled_server import JournalInterceptor
from tests.integration.fleet.replicas import until
from tests.integration.fleet.sockets import ports_towards

REQUEST = health_pb2.HealthCheckRequest(service="catalog")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
async def address(file) -> AsyncIterator[str]:
    server = aio.server(interceptors=[JournalInterceptor(Journal(file))])
    health = Health()
    health.register(server)
    await health.serve(REQUEST.service)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


async def test_watcher_is_known_by_a_connection_of_its_process_until_it_leaves(file, address):
    reader = JournalReader(file)
    async with aio.insecure_channel(f"ipv4:{address}") as channel:
        watching = health_pb2_grpc.HealthStub(channel).Watch(REQUEST)
        await watching.read()
        (peer,) = reader.watchers()
        assert {int(peer.rpartition(":")[2])} == ports_towards(os.getpid(), address)
        watching.cancel()
        await until(lambda: not reader.watchers(), "no watcher is left")
    assert reader.calls() == set()


def test_process_has_in_hand_what_has_begun_and_not_ended(file):
    journal, reader = Journal(file), JournalReader(file)
    # Two pages of the same request.
    journal.begin(CALL, "first")
    journal.begin(CALL, "first")
    journal.begin(CALL, "second")
    journal.end(CALL, "first")
    assert reader.calls() == {"first", "second"}
    journal.end(CALL, "first")
    assert reader.calls() == {"second"}
    assert JournalReader(file).calls() == {"second"}


def test_process_that_is_started_again_has_nothing_in_hand(file):
    Journal(file).begin(CALL, "first")
    Journal(file)
    assert JournalReader(file).calls() == set()
