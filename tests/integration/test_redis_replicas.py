"""Two replicas over one Redis: each key is minted once, and nothing that happens to Redis fails a request."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import pytest

from gateway.config.redis import RedisConfig
from gateway.domain.key import Key, Keys
from tests.integration.replica import KEYS, PATIENT, Provider, dropping, replica
from tests.stores.redis import PROGRAMS, running_server
from tests.waiting import eventually_async


async def test_a_stampede_mints_each_key_once(server):
    provider = Provider(seconds=0.05)
    keys = [(f"t{number}", recipient) for number in range(20) for recipient in ("ann", "bob", "eve")]
    async with replica(provider, url=server.url) as one, replica(provider, url=server.url) as two:
        requests = [(path, who, each) for path, who in keys for each in (one, two) for _ in range(10)]
        results = await asyncio.gather(*(each.issue(path, who) for path, who, each in requests))

    minted = Counter((scope.location, scope.recipient) for scope in provider.calls)
    assert len(minted) == len(keys)
    assert set(minted.values()) == {1}
    by_key: dict[tuple[str, str], set[str]] = {}
    for (path, who, _), credential in zip(requests, results, strict=True):
        assert credential.id.startswith(f"{who}-")
        by_key.setdefault((path, who), set()).add(credential.id)
    assert all(len(ids) == 1 for ids in by_key.values())


async def test_a_slow_mint_of_one_key_holds_up_no_other(server):
    provider = Provider()
    lease = {"url": server.url, "leaseTime": "9s"}
    async with replica(provider, **lease) as one, replica(provider, **lease) as two:
        provider.gate.clear()
        slow = asyncio.create_task(one.issue("slow"))
        await eventually_async(lambda: provider.calls)
        follower = asyncio.create_task(two.issue("slow"))
        await is_renewed(server.client())
        provider.gate.set()
        await two.issue("quick")
        assert (await slow).id == (await follower).id
    assert len(provider.calls) == 2


async def is_renewed(client) -> None:
    """Wait until the only lease has more time left than it had before."""
    (name,) = client.keys("*:l")
    left = [client.pttl(name)]

    def has_more() -> bool:
        left.append(client.pttl(name))
        return bool(left[-1] > left[-2] > 0)

    await eventually_async(has_more, "the leader renews its lease")


async def test_a_replica_that_is_killed_while_it_mints_costs_its_lease(server):
    command = [sys.executable, "-m", "tests.integration.mint_for_ever", server.url]
    leader = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert leader.stdout is not None
        assert await leader.stdout.readline() == b"minting\n"
    finally:
        leader.kill()
        await leader.wait()
    client = server.client()
    (lease,) = client.keys("*:l")
    assert 0 < client.pttl(lease) <= 60_000
    provider = Provider()
    async with replica(provider, url=server.url) as survivor:
        task = asyncio.create_task(survivor.issue())
        await eventually_async(lambda: survivor.lease_waits == 1)
        assert provider.calls == []
        # As Redis does when its time is over.
        client.delete(lease)
        await task
        assert len(provider.calls) == 1
    assert client.keys("*:l") == []


async def test_a_leader_that_is_stopped_lets_go(server):
    provider = Provider()
    provider.gate.clear()
    async with replica(provider, url=server.url) as one:
        task = asyncio.create_task(one.issue())
        await eventually_async(lambda: provider.calls)
        task.cancel()
    assert server.client().keys("*:l") == []


async def test_everything_flushed_in_the_middle_of_a_mint(server):
    provider = Provider()
    async with replica(provider, url=server.url) as one, replica(provider, url=server.url) as two:
        provider.gate.clear()
        first = asyncio.create_task(one.issue())
        await eventually_async(lambda: provider.calls)
        server.client().flushall()
        second = asyncio.create_task(two.issue())
        await eventually_async(lambda: len(provider.calls) == 2)
        provider.gate.set()
        await asyncio.gather(first, second)
        # Whichever was published first is what others find.
        async with replica(provider, url=server.url) as three:
            assert (await three.issue()).id in {(await first).id, (await second).id}
    assert len(provider.calls) == 2


async def test_a_full_redis_is_a_miss_and_still_read(server):
    provider = Provider()
    async with replica(provider, url=server.url) as one:
        stored = await one.issue("stored")
        server.client().config_set("maxmemory", 1)
        async with replica(provider, url=server.url) as two:
            assert await two.issue("stored") == stored
            for number in range(8):
                await two.issue(f"t{number}")
            assert two.errors("full") >= 8
            assert two.is_up
        server.client().config_set("maxmemory", 0)
        async with replica(provider, url=server.url) as three:
            await three.issue("t8")
            assert await one.issue("t8") == await three.issue("t8")
    assert len(provider.calls) == 10


async def test_values_of_another_type_and_garbage_are_misses_and_are_replaced(server):
    provider = Provider()
    client = server.client()
    async with replica(provider, url=server.url) as one:
        await one.issue("a")
    (name,) = client.keys("*:v")
    for poison in (lambda: client.lpush(name, "x"), lambda: client.set(name, b"\x01garbage")):
        client.delete(name)
        poison()
        calls = len(provider.calls)
        async with replica(provider, url=server.url) as two, replica(provider, url=server.url) as three:
            assert await two.issue("a") == await three.issue("a")
            assert two.is_up
        assert len(provider.calls) == calls + 1
    assert two.errors("unreadable") == 1


async def test_a_lease_without_an_end_is_taken_over_at_once(server):
    provider = Provider()
    client = server.client()
    async with replica(provider, url=server.url) as one:
        await one.issue("a")
    (name,) = client.keys("*:v")
    client.delete(name)
    client.set(name.replace(b":v", b":l"), b"forged")
    async with replica(provider, url=server.url) as two:
        await two.issue("a")
        assert two.lease_waits == 0
    assert client.get(name) is not None


async def test_nothing_in_redis_can_be_read_or_stays(server):
    provider = Provider()
    async with replica(provider, url=server.url) as one:
        credential = await one.issue("orders", "acme")
    client = server.client()
    names = client.keys("*")
    assert len(names) == 4
    for name in names:
        assert client.pttl(name) > 0
        content = client.zrange(name, 0, -1) if name.endswith(b":i") else [client.get(name)]
        text = repr((name, content))
        for secret in ("orders", "acme", "lake", "very-secret", credential.id, "AKIA"):
            assert secret not in text


async def test_a_rotation_of_the_sealing_key_costs_no_mint(server):
    provider = Provider()
    rotated = Keys(current=Key(id="k2", secret=b"n" * 32), previous=KEYS.current)
    async with replica(provider, url=server.url) as old, replica(provider, rotated, url=server.url) as new:
        assert await old.issue() == await new.issue()
    assert len(provider.calls) == 1


async def test_dropped_credentials_are_found_by_nobody(server):
    provider = Provider()
    async with replica(provider, url=server.url) as one:
        for path in ("a", "b"):
            for who in ("ann", "bob"):
                await one.issue(path, who)
        config = RedisConfig(url=server.url, timeout=PATIENT)
        async with dropping(config) as drops:
            assert await drops.drop_recipient("ann") == 2
        async with replica(provider, url=server.url) as two:
            assert await two.issue("a", "bob") == await one.issue("a", "bob")
            assert len(provider.calls) == 4
            await two.issue("a", "ann")
            assert len(provider.calls) == 5


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_redis_that_restarts_is_missed_once_and_used_again(program, tmp_path, caplog):
    provider = Provider()
    with running_server(program(), tmp_path) as server:
        port = server.port
        async with replica(provider, url=server.url) as one:
            await one.issue("before")
            server.process.kill()
            for number in range(8):
                await one.issue(f"without-{number}")
            assert not one.is_up
            with running_server(program(), tmp_path / "again", port=port) as again:
                await eventually_async(lambda: one.is_up)
                await one.issue("after")
                assert len(again.client().keys("*:v")) == 1
    assert caplog.text.count("redis is out of order") == 1
    assert caplog.text.count("redis is back") == 1
    assert len(provider.calls) == 10
