"""Credentials under load and under faults, over two replicas: what is counted wrong must be nothing."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from gateway.ports import utcnow
from tests.components import ALL_IN_ONE, TOXIPROXY, VALKEY
from tests.doubles.steerable_sts import Minted, SteerableSts, running_sts
from tests.fleet import Fleet, Judge, running_fleet
from tests.stores.redis import Server, running_server, valkey_program
from tests.stores.toxiproxy import running_toxiproxy

pytestmark = [pytest.mark.component(ALL_IN_ONE, VALKEY)]

TABLES = [f"t{number}" for number in range(100)]
RECIPIENTS = [f"recipient-{number}" for number in range(20)]
CLIENTS = 64
REQUESTS = 10_000


@pytest.fixture
def valkey(tmp_path) -> Iterator[Server]:
    with running_server(valkey_program(), tmp_path / "valkey") as server:
        yield server


@asynccontextmanager
async def fleet(
    directory: Path, redis_url: str, tables: list[str] = TABLES[:5]
) -> AsyncIterator[tuple[Fleet, SteerableSts]]:
    async with (
        running_sts() as sts,
        running_fleet(directory, sts, redis_url, tables=tables, recipients=RECIPIENTS) as replicas,
    ):
        yield replicas, sts


async def ask_all(replicas: Fleet, judge: Judge, requests: int, tables: list[str]) -> list[int]:
    """Send requests from many clients at once, for every pair of a recipient and a table in turn."""
    numbers = iter(range(requests))
    statuses = []

    async def client() -> None:
        for number in numbers:
            recipient = RECIPIENTS[number % len(RECIPIENTS)]
            table = tables[number // len(RECIPIENTS) % len(tables)]
            # The replica changes from one round of pairs to the next, too.
            replica = (number + number // (len(RECIPIENTS) * len(tables))) % 2
            answer = await replicas.vend(replica, recipient, table)
            statuses.append(answer.status)
            if answer.status == 200:
                judge.look(answer, recipient, table)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return statuses


async def test_ten_thousand_requests_over_two_replicas_mint_each_key_once(tmp_path, valkey):
    async with fleet(tmp_path, valkey.url, TABLES) as (replicas, sts):
        judge, began = Judge(), utcnow()
        statuses = await ask_all(replicas, judge, REQUESTS, TABLES)

        ended, pairs = utcnow(), list(product(RECIPIENTS, TABLES))
        most = await asyncio.to_thread(
            lambda: {pair: replicas.most_mints(*pair, began, ended) for pair in pairs}
        )
        assert statuses == [200] * REQUESTS
        assert judge.verdict == {}
        assert judge.seen == REQUESTS
        minted = {pair: sts.mints[Minted(f"tables/{pair[1]}/*", pair[0])] for pair in pairs}
        assert sts.mints.total() == sum(minted.values())
        # A pair whose window came near its end has one for the next, too: that is another key.
        assert [pair for pair in pairs if not 1 <= minted[pair] <= most[pair]] == []
        assert Counter(most.values())[1] > len(pairs) / 2


async def test_slow_token_service_is_asked_once_however_many_wait(tmp_path, valkey):
    async with fleet(tmp_path, valkey.url) as (replicas, sts):
        sts.delay = timedelta(seconds=2)
        judge = Judge()

        answers = await asyncio.gather(
            *(replicas.vend(number % 2, RECIPIENTS[0], "t0") for number in range(100))
        )

        for answer in answers:
            judge.look(answer, RECIPIENTS[0], "t0")
        assert judge.verdict == {}
        assert sts.mints == {Minted("tables/t0/*", RECIPIENTS[0]): 1}


async def test_slow_mint_does_not_hold_up_another_key(tmp_path, valkey):
    async with fleet(tmp_path, valkey.url) as (replicas, sts):
        await replicas.vend(0, RECIPIENTS[1], "t1")
        sts.delay = timedelta(seconds=60)
        slow = asyncio.create_task(replicas.vend(0, RECIPIENTS[0], "t0"))
        await sts.busy.wait()

        answer = await replicas.vend(0, RECIPIENTS[1], "t1")

        assert answer.status == 200
        assert not slow.done()
        slow.cancel()


@pytest.mark.parametrize("trouble", ["Throttling", "AccessDenied", "down"])
async def test_trouble_of_the_token_service_is_felt_by_those_it_has_not_served_alone(
    tmp_path, valkey, trouble
):
    async with fleet(tmp_path, valkey.url) as (replicas, sts):
        judge = Judge()
        assert set(await ask_all(replicas, judge, 100, ["t0", "t1"])) == {200}
        sts.error, sts.down = ("", True) if trouble == "down" else (trouble, False)

        assert set(await ask_all(replicas, judge, 100, ["t0", "t1"])) == {200}
        # Those whose window is nearly over have asked for the next one by now.
        calls = sts.calls
        refused = [await replicas.vend(number % 2, RECIPIENTS[0], "t2") for number in range(20)]

        assert judge.verdict == {}
        assert {answer.status for answer in refused} == {503}
        assert all("credentials" not in answer.body for answer in refused)
        if trouble == "Throttling":
            assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)
            # It has asked to be left alone: it hears of few of the twenty, each of which would try twice.
            assert sts.calls - calls < 20

        sts.error, sts.down = "", False
        async with asyncio.timeout(60):
            while (answer := await replicas.vend(0, RECIPIENTS[0], "t2")).status != 200:
                await asyncio.sleep(0.2)
        judge.look(answer, RECIPIENTS[0], "t2")
        assert judge.verdict == {}


async def test_credential_that_has_expired_when_it_is_given_reaches_nobody(tmp_path, valkey):
    async with fleet(tmp_path, valkey.url) as (replicas, sts):
        sts.life = timedelta(seconds=-1)
        assert (await replicas.vend(0, RECIPIENTS[0], "t0")).status == 503

        sts.life = None
        answer = await replicas.vend(1, RECIPIENTS[0], "t0")

        judge = Judge()
        judge.look(answer, RECIPIENTS[0], "t0")
        assert judge.verdict == {}


async def test_credential_of_a_short_life_is_served_truthfully_and_not_again(tmp_path, valkey):
    async with fleet(tmp_path, valkey.url) as (replicas, sts):
        sts.life = timedelta(minutes=10)
        judge = Judge()

        for number in range(4):
            answer = await replicas.vend(number % 2, RECIPIENTS[0], "t0")
            judge.look(answer, RECIPIENTS[0], "t0", least=timedelta(minutes=10))

        assert judge.verdict == {}
        assert sts.mints.total() == 4
        assert await replicas.total("sluice_credential_short_lived_total") == 4


async def test_replica_that_dies_in_the_middle_of_a_mint_costs_its_lease(tmp_path, valkey):
    async with fleet(tmp_path, valkey.url) as (replicas, sts):
        sts.delay = timedelta(seconds=3)
        first = asyncio.create_task(replicas.vend(0, RECIPIENTS[0], "t0"))
        await sts.busy.wait()
        second = asyncio.create_task(replicas.vend(1, RECIPIENTS[0], "t0"))
        async with asyncio.timeout(30):
            while await replicas.total("sluice_credential_lease_waits_total") < 1:
                await asyncio.sleep(0.05)

        await asyncio.to_thread(replicas.replicas[0].edge.stop, signal.SIGKILL)

        judge = Judge()
        judge.look(await second, RECIPIENTS[0], "t0")
        assert judge.verdict == {}
        # The dead one's, which nobody received, and the one after it.
        assert sts.mints.total() == 2
        await asyncio.gather(first, return_exceptions=True)


@pytest.mark.system
@pytest.mark.component(TOXIPROXY)
async def test_redis_that_is_slow_cut_off_gone_and_back_costs_no_request(tmp_path, valkey):
    with running_toxiproxy(tmp_path, valkey.port) as proxy:
        async with fleet(tmp_path, f"redis://127.0.0.1:{proxy.port}", TABLES[:40]) as (replicas, sts):
            judge = Judge()

            async def go_wrong() -> None:
                for kind, attributes in (
                    ("latency", {"latency": 1000}),
                    ("reset_peer", {"timeout": 0}),
                    ("bandwidth", {"rate": 1}),
                    ("limit_data", {"bytes": 20}),
                ):
                    proxy.add(kind, **attributes)
                    await asyncio.sleep(1)
                    proxy.remove(kind)
                proxy.set_enabled(enabled=False)
                await asyncio.sleep(1)
                proxy.set_enabled(enabled=True)

            trouble = asyncio.create_task(go_wrong())
            statuses: list[int] = []
            while not trouble.done():
                statuses += await ask_all(replicas, judge, 800, TABLES[:40])
            await trouble

            assert set(statuses) == {200}
            assert judge.verdict == {}
            assert await replicas.total("sluice_cache_redis_errors_total") > 0
            async with asyncio.timeout(60):
                while await replicas.total("sluice_cache_redis_up") < 2:
                    await ask_all(replicas, judge, 40, TABLES[:2])
                    await asyncio.sleep(0.5)
            # Without Redis each replica mints for itself, and no more.
            assert max(sts.mints.values()) <= 3


async def test_redis_that_is_emptied_under_load_costs_no_request(tmp_path, valkey):
    async with fleet(tmp_path, valkey.url, TABLES[:20]) as (replicas, sts):
        judge = Judge()
        load = asyncio.create_task(ask_all(replicas, judge, 2000, TABLES[:20]))
        while not load.done():
            await asyncio.to_thread(valkey.client().flushall)
            await asyncio.sleep(0.05)

        assert await load == [200] * 2000
        assert judge.verdict == {}
        # Whatever is lost between them, each of the two remembers its own, for this window and the next.
        assert max(sts.mints.values()) <= 4
