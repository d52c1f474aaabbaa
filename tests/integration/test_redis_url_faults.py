"""A Redis that is slow, resets connections, swallows answers or is gone, under load: every URL is right."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from gateway.ports import SigningCost
from tests.components import TOXIPROXY
from tests.integration.signing_replica import SigningReplica, assert_right, signing_replica
from tests.waiting import eventually_async

pytestmark = [pytest.mark.component(TOXIPROXY), pytest.mark.system]

ALWAYS = {"redis": "always", "memory": "64KiB"}
# Both ways to share: without a lease, and with one.
COSTS = SigningCost.PRIVATE_KEY, SigningCost.CALL
PAGES, CLIENTS = 12, 6
# Seconds between the requests of a client: enough requests meet a fault, and the cores stay free.
PAUSE = 0.04
TOXICS = {
    "latency": {"latency": 1000, "jitter": 800},
    "reset_peer": {"timeout": 0},
    "timeout": {"timeout": 0},
    "slow_close": {"delay": 2000},
    "limit_data": {"bytes": 5000},
    "bandwidth": {"rate": 20},
    "slicer": {"average_size": 64, "size_variation": 32, "delay": 500},
}


# The others are slow, and may be quick enough.
FELT = {"latency", "reset_peer", "timeout", "limit_data"}


@dataclass
class Load:
    """Asks replicas for pages until it is told to stop; each answer is checked."""

    replicas: tuple[SigningReplica, ...]
    is_over: bool = False
    answers: int = 0
    by_page: dict[int, set[tuple[str, ...]]] = field(default_factory=dict)

    async def run(self) -> None:
        await asyncio.gather(*(self._ask(random.Random(number)) for number in range(CLIENTS)))

    async def _ask(self, chance: random.Random) -> None:
        while not self.is_over:
            page = chance.randrange(PAGES)
            urls = tuple(await chance.choice(self.replicas).urls(page))
            known = self.by_page.setdefault(page, set())
            # The same URLs need no second verification.
            if urls not in known:
                assert_right(urls, page)
                known.add(urls)
            self.answers += 1
            await asyncio.sleep(PAUSE)


def failures(replica: SigningReplica) -> float:
    return replica.errors("timeout") + replica.errors("connection")


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("toxic", TOXICS)
async def test_faults_on_the_way_cost_time_and_nothing_else(proxy, toxic, cost):
    url = f"redis://127.0.0.1:{proxy.port}"
    async with (
        signing_replica(cost, urls=ALWAYS, url=url, timeout="200ms") as one,
        signing_replica(cost, urls=ALWAYS, url=url, timeout="200ms") as two,
    ):
        load = Load((one, two))
        task = asyncio.create_task(load.run())
        await eventually_async(lambda: load.answers > 50 or task.done())
        await asyncio.to_thread(proxy.add, toxic, **TOXICS[toxic])
        before = load.answers
        await eventually_async(lambda: load.answers > before + 50 or task.done())
        if toxic in FELT:
            await eventually_async(lambda: (failures(one) and failures(two)) or task.done())
        await asyncio.to_thread(proxy.remove, toxic)
        await eventually_async(lambda: (one.is_up and two.is_up) or task.done())
        load.is_over = True
        await task
    # Equal by construction, wherever they came from.
    assert all(len(answers) == 1 for answers in load.by_page.values())


@pytest.mark.parametrize("cost", COSTS)
async def test_sessions_go_on_when_redis_is_gone_and_back(proxy, cost):
    url = f"redis://127.0.0.1:{proxy.port}"
    async with (
        signing_replica(cost, has_sessions=True, urls=ALWAYS, url=url) as one,
        signing_replica(cost, has_sessions=True, urls=ALWAYS, url=url) as two,
    ):
        # Pages that only one of them signs, so that both have the session.
        for number, replica in enumerate((one, two)):
            assert_right(await replica.urls(PAGES + number), PAGES + number)
        load = Load((one, two))
        task = asyncio.create_task(load.run())
        await eventually_async(lambda: load.answers > 30 or task.done())
        await asyncio.to_thread(proxy.set_enabled, enabled=False)
        await eventually_async(lambda: not (one.is_up or two.is_up) or task.done())
        before = load.answers
        await eventually_async(lambda: load.answers > before + 50 or task.done())
        await asyncio.to_thread(proxy.set_enabled, enabled=True)
        await eventually_async(lambda: (one.is_up and two.is_up) or task.done())
        load.is_over = True
        await task
        # Each has it in memory.
        assert len(one.vendor.minted) + len(two.vendor.minted) == 1


@pytest.mark.parametrize("cost", COSTS)
async def test_somebody_who_swaps_cuts_and_spoils_values_under_load_never_gets_a_wrong_url_out(server, cost):
    client = server.client()
    client.flushall()
    async with (
        signing_replica(cost, urls=ALWAYS, url=server.url) as one,
        signing_replica(cost, urls=ALWAYS, url=server.url) as two,
    ):
        load = Load((one, two))
        task = asyncio.create_task(load.run())
        chance = random.Random(7)
        for _ in range(60):
            await asyncio.to_thread(_spoil, client, chance)
            await asyncio.sleep(0.02)

        async def is_noticed() -> bool:
            await asyncio.to_thread(_spoil, client, chance)
            return one.errors("unreadable") + two.errors("unreadable") > 0 or task.done()

        await eventually_async(is_noticed)
        load.is_over = True
        await task
        assert one.errors("unreadable") + two.errors("unreadable") > 0
        assert one.is_up
        assert two.is_up
    assert all(len(answers) == 1 for answers in load.by_page.values())


async def test_a_redis_that_fills_up_under_load_is_a_miss(server):
    client = server.client()
    client.flushall()
    async with signing_replica(urls=ALWAYS, url=server.url) as one:
        load = Load((one,))
        task = asyncio.create_task(load.run())
        await eventually_async(lambda: load.answers > 30 or task.done())
        client.flushall()
        client.config_set("maxmemory", 1)
        await eventually_async(lambda: one.errors("full") > 5 or task.done())
        client.config_set("maxmemory", 0)
        before = one.served("redis")
        await eventually_async(lambda: one.served("redis") > before or task.done())
        load.is_over = True
        await task


def _spoil(client, chance: random.Random) -> None:
    names = client.keys("*:v")
    if len(names) < 2:
        return
    name, other = chance.sample(names, 2)
    value, another = client.get(name) or b"", client.get(other) or b""
    spoilt = chance.choice([another, value[: len(value) // 2], value[::-1], b"garbage", another + value])
    client.set(name, spoilt, px=60_000)
