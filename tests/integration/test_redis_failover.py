"""Another Redis takes the place of the one that is gone, and slots move between nodes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from tests.integration.replica import Provider, agree, replica
from tests.stores.redis import (
    PROGRAMS,
    SERVICE,
    running_cluster,
    running_sentinels,
    running_server,
)
from tests.waiting import eventually_async

pytestmark = [
    pytest.mark.parametrize("program", PROGRAMS),
    # The client lets go of a node that is gone without closing its connections.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()


async def test_sentinels_lead_to_the_new_primary(program, tmp_path, caplog):
    provider = Provider()
    with running_sentinels(program(), tmp_path) as servers:
        sentinel = {"addresses": [servers.address], "service": SERVICE}
        async with (
            replica(provider, sentinel=sentinel) as one,
            replica(provider, sentinel=sentinel) as two,
        ):
            assert await one.issue("before") == await two.issue("before")
            servers.primary.process.kill()
            for number in range(10):
                await one.issue(f"during-{number}")
            await asyncio.to_thread(servers.promote)
            await eventually_async(lambda: one.is_up)
            # What a replica that did not see the primary go has open still leads there: until each of those
            # is given up, it issues for itself.
            await agree(one, two)
            calls = len(provider.calls)
            first = await one.issue("after")
            assert len(servers.replica.client().keys("*:v")) >= 1
            assert await two.issue("after") == first
            assert len(provider.calls) == calls + 1
    assert caplog.text.count("redis is back") <= 2


async def test_a_primary_that_became_a_replica_is_left_alone_until_it_takes_values_again(
    program, tmp_path, caplog
):
    provider = Provider()
    with (
        running_server(program(), tmp_path / "one") as server,
        running_server(program(), tmp_path / "two") as other,
    ):
        async with replica(provider, url=server.url) as one:
            await one.issue("before")
            server.client().replicaof("127.0.0.1", other.port)
            await eventually_async(lambda: server.client().info("replication")["role"] == "slave")
            for number in range(10):
                await one.issue(f"during-{number}")
            assert not one.is_up
            server.client().replicaof("no", "one")
            await eventually_async(lambda: one.is_up)
            await one.issue("after")
        assert server.client().keys("*:v")
    assert caplog.text.count("redis is out of order") == 1
    assert len(provider.calls) == 12


async def test_slots_that_move_are_followed(program, tmp_path):
    provider = Provider()
    with running_cluster(program(), tmp_path) as nodes:
        async with (
            replica(provider, url=nodes[0].url, cluster=True) as one,
            replica(provider, url=nodes[1].url, cluster=True) as two,
        ):
            await one.issue("before")
            owner = nodes[1].client().execute_command("CLUSTER", "MYID").decode()
            # Half of what the first node had goes to the second, without any of its values.
            nodes[0].client().flushall()
            for client in [node.client() for node in nodes]:
                with client.pipeline(transaction=False) as pipeline:
                    for slot in range(2730):
                        pipeline.execute_command("CLUSTER", "SETSLOT", slot, "NODE", owner)
                    pipeline.execute()
            for number in range(30):
                await one.issue(f"learns-{number}")
                await two.issue(f"learns-{number}")
            calls = len(provider.calls)
            for number in range(30):
                assert await one.issue(f"knows-{number}") == await two.issue(f"knows-{number}")
            assert one.is_up
            assert len(provider.calls) == calls + 30


async def test_a_node_that_dies_fails_no_request(program, tmp_path):
    provider = Provider()
    with running_cluster(program(), tmp_path) as nodes:
        for node in nodes:
            node.client().config_set("cluster-require-full-coverage", "no")
        async with replica(provider, url=nodes[0].url, cluster=True) as one:
            await one.issue("before")
            nodes[2].process.kill()
            for number in range(40):
                await one.issue(f"t{number}")
            assert len(provider.calls) == 41
