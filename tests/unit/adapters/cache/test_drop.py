from __future__ import annotations

import asyncio

import pytest

from gateway.adapters.cache.drop import Drops
from gateway.adapters.cache.vault import Vault
from gateway.domain.key import Key, Keys
from tests.unit.adapters.cache.doubles import KEYS, scope


@pytest.fixture
def drops(redis):
    return Drops(redis, Vault(KEYS))


async def test_what_is_dropped_is_found_by_nobody(new_replica, provider, redis, drops):
    issuer = new_replica().wrap(provider)
    await issuer.issue(scope(recipient="ann"))
    await issuer.issue(scope("s3://lake/u", recipient="ann"))
    bob = await issuer.issue(scope(recipient="bob"))
    assert await drops.drop_recipient("ann") == 2

    fresh = new_replica().wrap(provider)
    await fresh.issue(scope(recipient="ann"))
    assert len(provider.calls) == 4
    assert await fresh.issue(scope(recipient="bob")) == bob
    assert len(provider.calls) == 4


async def test_a_whole_storage_is_dropped(new_replica, provider, drops):
    issuer = new_replica().wrap(provider)
    for recipient in ("ann", "bob", ""):
        await issuer.issue(scope(recipient=recipient))
    await new_replica().wrap(provider, name="pond").issue(scope())
    assert await drops.drop_storage("lake") == 3
    await new_replica().wrap(provider).issue(scope())
    assert len(provider.calls) == 5


async def test_what_was_being_minted_when_it_was_dropped_is_found_by_nobody(
    new_replica, provider, redis, drops
):
    provider.gate.clear()
    before = asyncio.create_task(new_replica().wrap(provider).issue(scope()))
    while not provider.calls:
        await asyncio.sleep(0)
    await drops.drop_recipient("ann")
    provider.gate.set()
    old = await before

    one, two = new_replica().wrap(provider), new_replica().wrap(provider)
    fresh = await one.issue(scope())
    assert fresh != old
    assert await two.issue(scope()) == fresh
    assert len(provider.calls) == 2


async def test_it_reaches_replicas_on_both_sides_of_a_rotation(new_replica, provider, redis):
    rotated = Keys(current=Key(id="k2", secret=b"n" * 32), previous=KEYS.current)
    await new_replica().wrap(provider).issue(scope())
    await new_replica(keys=rotated).wrap(provider).issue(scope("s3://lake/u"))
    assert await Drops(redis, Vault(rotated)).drop_recipient("ann") == 2
    await new_replica().wrap(provider).issue(scope())
    await new_replica(keys=rotated).wrap(provider).issue(scope("s3://lake/u"))
    assert len(provider.calls) == 4


async def test_it_says_when_redis_does_not_answer(redis, drops):
    redis.is_out = True
    assert await drops.drop_recipient("ann") is None


async def test_it_says_when_redis_takes_no_epoch(redis, drops):
    redis.is_full = True
    assert await drops.drop_storage("lake") is None
