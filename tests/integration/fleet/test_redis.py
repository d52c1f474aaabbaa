"""Redis goes away under load, and comes back empty or as another server: no request notices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.integration.fleet.metrics import total
from tests.integration.fleet.replicas import until
from tests.integration.fleet.running import Fleet
from tests.stores.redis import SERVICE, Sentinels, running_sentinels, valkey_program

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)

USERS = ("presign", "vending")


async def test_redis_that_is_killed_and_started_again_empty_costs_no_request(fleet, recorded):
    async with recorded("Redis killed and restarted", fleet.loaded()) as load:
        await load.answered(40)
        await asyncio.to_thread(fleet.redis.kill)
        await load.answered(80)
        fleet.redis.start()
        await until(lambda: is_up(fleet), "Redis is used again")
        await load.answered(40)
        load.note(sources(fleet))
    assert load.tally.faults == []
    assert load.tally.count("answered") == load.tally.count("sent")
    assert load.tally.reasons() == {}


@pytest.fixture
def sentinels(tmp_path) -> Iterator[Sentinels]:
    with running_sentinels(valkey_program(), tmp_path) as servers:
        yield servers


async def test_failover_by_sentinels_costs_no_request(fleet, recorded, sentinels):
    redis = {"sentinel": {"addresses": [sentinels.address], "service": SERVICE}, "timeout": "5s"}
    before = await use(fleet, {"redis": redis})
    try:
        async with recorded("Redis failover by Sentinel", fleet.loaded()) as load:
            await load.answered(40)
            await asyncio.to_thread(sentinels.primary.process.kill)
            await load.answered(40)
            await asyncio.to_thread(sentinels.promote)
            await until(lambda: is_up(fleet), "the new primary is used")
            await load.answered(40)
            keys = len(sentinels.replica.client().keys("*:v"))
            load.note(sources(fleet))
            load.note(f"{keys} values in the new primary")
    finally:
        await use(fleet, before)
    assert load.tally.faults == []
    assert load.tally.count("answered") == load.tally.count("sent")
    assert load.tally.reasons() == {}
    assert keys > 0


async def use(fleet: Fleet, cache: dict[str, object]) -> dict[str, object]:
    """Start those who use Redis with other settings for it, and return the settings before."""
    users = fleet.replicas.every(USERS)
    await fleet.replicas.stop(users)
    before: list[dict[str, object]] = [user.change(cache=cache)["cache"] for user in users]
    await fleet.heal()
    return before[0]


def is_up(fleet: Fleet) -> bool:
    return total(fleet.of("vending"), "sluice_cache_redis_up") == len(fleet.of("vending"))


def sources(fleet: Fleet) -> str:
    counts = {
        source: int(total(fleet.of("vending"), "sluice_credential_requests_total", source=source))
        for source in ("memory", "redis", "minted")
    }
    errors = int(total(fleet.of("vending"), "sluice_cache_redis_errors_total"))
    return f"credentials by source: {counts}; {errors} errors of Redis"
