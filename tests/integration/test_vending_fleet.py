"""Credentials under load and under faults, over two replicas: what is counted wrong must be nothing.

Most tests share one fleet: each has tables of its own there, and leaves the token service as it found it.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from gateway.ports import utcnow
from tests.components import ALL_IN_ONE, TOXIPROXY, VALKEY
from tests.doubles.steerable_sts import Minted, SteerableSts, running_sts
from tests.fleet import Answer, Fleet, Judge, running_fleet
from tests.stores.redis import Server, running_server, valkey_program
from tests.stores.toxiproxy import running_toxiproxy
from tests.waiting import eventually_async

pytestmark = [pytest.mark.component(ALL_IN_ONE, VALKEY), pytest.mark.asyncio(loop_scope="module")]

RECIPIENTS = [f"recipient-{number}" for number in range(20)]
CLIENTS = 64
TROUBLES = ("Throttling", "AccessDenied", "down")

# The tables of each test on the shared fleet: what one test has had minted is no miss in another.
LOADED = [f"loaded-{number}" for number in range(20)]
LOADED_FOR_RELEASE = [f"loaded-for-release-{number}" for number in range(100)]
PROXIED = [f"proxied-{number}" for number in range(20)]
EMPTIED = [f"emptied-{number}" for number in range(20)]
TROUBLED = {
    trouble: [f"{trouble.lower()}-{name}" for name in ("first", "second", "new", "after")]
    for trouble in TROUBLES
}
SINGLE = ("waited-for", "slow", "quick", "expired", "short-lived")
TABLES = [
    *LOADED,
    *LOADED_FOR_RELEASE,
    *EMPTIED,
    *(name for names in TROUBLED.values() for name in names),
    *SINGLE,
]


class Shared(NamedTuple):
    """Two replicas before one token service."""

    replicas: Fleet
    sts: SteerableSts


@pytest.fixture(scope="module")
def valkey(tmp_path_factory) -> Iterator[Server]:
    with running_server(valkey_program(), tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet_of_module(tmp_path_factory, valkey) -> AsyncIterator[Shared]:
    async with fleet(tmp_path_factory.mktemp("fleet"), valkey.url, TABLES) as shared:
        yield shared


@pytest.fixture
def shared(fleet_of_module) -> Iterator[Shared]:
    """The fleet for a test that leaves it running."""
    yield fleet_of_module
    sts = fleet_of_module.sts
    if sts.blocked_until is not None:
        sts.blocked_until.set()
    sts.delay, sts.blocked_until, sts.error, sts.down, sts.life = timedelta(0), None, "", False, None


@asynccontextmanager
async def fleet(directory: Path, redis_url: str, tables: list[str], **redis: str) -> AsyncIterator[Shared]:
    async with (
        running_sts() as sts,
        running_fleet(
            directory, sts, redis_url, tables=tables, recipients=RECIPIENTS, redis=redis
        ) as replicas,
    ):
        yield Shared(replicas, sts)


def mints_of(sts: SteerableSts, *tables: str) -> Counter[Minted]:
    """Return what the service has minted for some tables."""
    prefixes = {f"tables/{table}/*" for table in tables}
    return Counter({minted: count for minted, count in sts.mints.items() if minted.prefix in prefixes})


async def ask_all(
    replicas: Fleet, judge: Judge, requests: int, tables: list[str], pause: float = 0
) -> list[int]:
    """Send requests from many clients at once, for every pair of a recipient and a table in turn.

    Each client waits for some seconds after a request, if that is asked for.
    """
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
            await asyncio.sleep(pause)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return statuses


@pytest.mark.parametrize(
    ("requests", "tables"),
    [
        pytest.param(2_000, LOADED, id="2,000"),
        pytest.param(10_000, LOADED_FOR_RELEASE, id="10,000", marks=pytest.mark.release),
    ],
)
async def test_many_requests_over_two_replicas_mint_each_key_once(shared, requests, tables):
    """Each pair is asked for five times, by either replica: for a release, with five times as many pairs."""
    replicas, sts = shared
    judge, began = Judge(), utcnow()
    statuses = await ask_all(replicas, judge, requests, tables)

    ended, pairs = utcnow(), list(product(RECIPIENTS, tables))
    most = {pair: replicas.most_mints(*pair, began, ended) for pair in pairs}
    assert statuses == [200] * requests
    assert judge.verdict == {}
    assert judge.seen == requests
    minted = {pair: sts.mints[Minted(f"tables/{pair[1]}/*", pair[0])] for pair in pairs}
    assert mints_of(sts, *tables).total() == sum(minted.values())
    # A pair whose window came near its end has one for the next, too: that is another key.
    assert [pair for pair in pairs if not 1 <= minted[pair] <= most[pair]] == []
    assert Counter(most.values())[1] > len(pairs) / 2


async def test_slow_token_service_is_asked_once_however_many_wait(shared):
    replicas, sts = shared
    sts.blocked_until = asyncio.Event()
    before = await resolved_and_waiting(replicas)
    judge = Judge()

    asking = asyncio.gather(
        *(replicas.vend(number % 2, RECIPIENTS[0], "waited-for") for number in range(100))
    )

    async def all_wait() -> bool:
        resolved, waiting = await resolved_and_waiting(replicas)
        return resolved == before[0] + 100 and waiting > before[1]

    await eventually_async(all_wait)
    sts.blocked_until.set()
    for answer in await asking:
        judge.look(answer, RECIPIENTS[0], "waited-for")
    assert judge.verdict == {}
    assert mints_of(sts, "waited-for") == {Minted("tables/waited-for/*", RECIPIENTS[0]): 1}


async def resolved_and_waiting(replicas: Fleet) -> tuple[float, float]:
    """Return how many requests the catalog has answered, and how often a replica waited for the other."""
    return (
        await replicas.total("sluice_rpc_requests_total", method="/gateway.v1.Catalog/Resolve"),
        await replicas.total("sluice_credential_lease_waits_total"),
    )


async def test_slow_mint_does_not_hold_up_another_key(shared):
    replicas, sts = shared
    await replicas.vend(0, RECIPIENTS[1], "quick")
    sts.busy.clear()
    sts.blocked_until = asyncio.Event()
    slow = asyncio.create_task(replicas.vend(0, RECIPIENTS[0], "slow"))
    await sts.busy.wait()

    answer = await replicas.vend(0, RECIPIENTS[1], "quick")

    assert answer.status == 200
    assert not slow.done()
    sts.blocked_until.set()
    judge = Judge()
    judge.look(await slow, RECIPIENTS[0], "slow")
    assert judge.verdict == {}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_trouble_of_the_token_service_is_felt_by_those_it_has_not_served_alone(shared, trouble):
    replicas, sts = shared
    first, second, new, after = TROUBLED[trouble]
    judge = Judge()
    assert set(await ask_all(replicas, judge, 100, [first, second])) == {200}
    sts.error, sts.down = ("", True) if trouble == "down" else (trouble, False)

    assert set(await ask_all(replicas, judge, 100, [first, second])) == {200}
    # Those whose window is nearly over have asked for the next one by now.
    calls = sts.calls
    refused = [await replicas.vend(number % 2, RECIPIENTS[0], new) for number in range(20)]

    assert judge.verdict == {}
    assert {answer.status for answer in refused} == {503}
    assert all("credentials" not in answer.body for answer in refused)
    if trouble == "Throttling":
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)
        # It has asked to be left alone: it hears of few of the twenty, each of which would try twice.
        assert sts.calls - calls < 20

    sts.error, sts.down = "", False
    judge.look(await until_served(replicas, 0, RECIPIENTS[0], new), RECIPIENTS[0], new)
    # Each replica by a credential that only it can have minted: none is left that backs off.
    for number in range(2):
        recipient = RECIPIENTS[number]
        judge.look(await until_served(replicas, number, recipient, after), recipient, after)
    assert judge.verdict == {}


async def until_served(replicas: Fleet, replica: int, recipient: str, table: str) -> Answer:
    async def served() -> Answer | None:
        answer = await replicas.vend(replica, recipient, table)
        return answer if answer.status == 200 else None

    return await eventually_async(served, seconds=120, pause=0.2)


async def test_credential_that_has_expired_when_it_is_given_reaches_nobody(shared):
    replicas, sts = shared
    sts.life = timedelta(seconds=-1)
    assert (await replicas.vend(0, RECIPIENTS[0], "expired")).status == 503

    sts.life = None
    answer = await replicas.vend(1, RECIPIENTS[0], "expired")

    judge = Judge()
    judge.look(answer, RECIPIENTS[0], "expired")
    assert judge.verdict == {}


async def test_credential_of_a_short_life_is_served_truthfully_and_not_again(shared):
    replicas, sts = shared
    before = await replicas.total("sluice_credential_short_lived_total")
    sts.life = timedelta(minutes=10)
    judge = Judge()

    for number in range(4):
        answer = await replicas.vend(number % 2, RECIPIENTS[0], "short-lived")
        judge.look(answer, RECIPIENTS[0], "short-lived", least=timedelta(minutes=10))

    assert judge.verdict == {}
    assert mints_of(sts, "short-lived").total() == 4
    assert await replicas.total("sluice_credential_short_lived_total") == before + 4


async def test_replica_that_dies_in_the_middle_of_a_mint_costs_its_lease(tmp_path, valkey):
    async with fleet(tmp_path, valkey.url, ["t0"]) as (replicas, sts):

        async def is_follower_waiting() -> bool:
            return await replicas.total("sluice_credential_lease_waits_total") > 0

        sts.blocked_until = asyncio.Event()
        first = asyncio.create_task(replicas.vend(0, RECIPIENTS[0], "t0"))
        await sts.busy.wait()
        second = asyncio.create_task(replicas.vend(1, RECIPIENTS[0], "t0"))
        await eventually_async(is_follower_waiting)

        await asyncio.to_thread(replicas.replicas[0].edge.stop, signal.SIGKILL)
        # As Redis does when its time is over.
        client = valkey.client()
        leases = client.keys("*:l")
        assert all(client.pttl(lease) > 0 for lease in leases)
        assert client.delete(*leases) > 0
        calls = sts.calls
        sts.blocked_until.set()

        judge = Judge()
        judge.look(await second, RECIPIENTS[0], "t0")
        assert judge.verdict == {}
        # One call besides that of the killed replica, whose credential was never served.
        assert sts.calls == calls + 1
        await asyncio.gather(first, return_exceptions=True)


@pytest.mark.system
@pytest.mark.component(TOXIPROXY)
async def test_redis_that_is_slow_cut_off_gone_and_back_costs_no_request(tmp_path, valkey):
    with running_toxiproxy(tmp_path, valkey.port) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}"
        async with fleet(tmp_path, url, PROXIED, timeout="2s") as (replicas, sts):
            judge = Judge()

            async def is_used_by_both() -> bool:
                await ask_all(replicas, judge, 40, PROXIED[:2])
                return await replicas.total("sluice_cache_redis_up") == 2

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
                # Every pair by each replica in a few seconds: each fault meets hundreds of requests.
                statuses += await ask_all(replicas, judge, 800, PROXIED, pause=0.2)
            await trouble

            assert set(statuses) == {200}
            assert judge.verdict == {}
            assert await replicas.total("sluice_cache_redis_errors_total") > 0
            await eventually_async(is_used_by_both, seconds=120, pause=0.5)
            # Without Redis each replica mints for itself, for this window and the next, and no more.
            assert max(sts.mints.values()) <= 4


async def test_redis_that_is_emptied_under_load_costs_no_request(shared, valkey):
    replicas, sts = shared
    judge = Judge()
    load = asyncio.create_task(ask_all(replicas, judge, 2000, EMPTIED))
    while not load.done():
        await asyncio.to_thread(valkey.client().flushall)
        await asyncio.sleep(0.05)

    assert await load == [200] * 2000
    assert judge.verdict == {}
    # Whatever is lost between them, each of the two remembers its own, for this window and the next.
    assert max(mints_of(sts, *EMPTIED).values()) <= 4
