from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.adapters.credential_metrics import RedisError
from gateway.domain.key import Key, Keys
from gateway.errors import Unavailable
from tests.unit.adapters.cache.doubles import (
    HOUR,
    KEYS,
    LEASE,
    MINUTE,
    NOON,
    Replica,
    Time,
    scope,
    settle,
    to_next_window,
)

SECOND = timedelta(seconds=1)


def unreadable(replica: Replica) -> float:
    return replica.redis_errors(RedisError.UNREADABLE)


async def started(new_replica, provider) -> Replica:
    """Return a replica that has issued one credential."""
    replica: Replica = new_replica()
    await replica.wrap(provider).issue(scope())
    return replica


async def test_what_one_replica_has_minted_another_finds(new_replica, provider):
    one, two = new_replica(), new_replica()
    first = await one.wrap(provider).issue(scope())
    assert await two.wrap(provider).issue(scope()) == first
    assert len(provider.calls) == 1
    assert (one.sources(), two.sources()) == ({"minted": 1}, {"redis": 1})


async def test_replicas_that_are_asked_at_once_mint_once(new_replica, provider):
    issuers = [new_replica().wrap(provider) for _ in range(4)]
    provider.gate.clear()
    tasks = [asyncio.create_task(issuer.issue(scope())) for issuer in issuers for _ in range(5)]
    await settle()
    provider.gate.set()
    results = await asyncio.gather(*tasks)
    assert len(set(results)) == 1
    assert len(provider.calls) == 1


async def test_a_slow_leader_keeps_its_lease(new_replica, provider, time, redis):
    one, two = new_replica().wrap(provider), new_replica().wrap(provider)
    provider.gate.clear()
    leader = asyncio.create_task(one.issue(scope()))
    await settle()
    # Sleeping moves time: the leader renews at a third of its lease again and again.
    follower = asyncio.create_task(two.issue(scope()))
    for _ in range(40):
        await settle()
    assert time.now - NOON > LEASE
    assert len(provider.calls) == 1
    provider.gate.set()
    assert await leader == await follower


async def test_a_dead_leader_costs_its_lease_and_no_more(new_replica, provider, time, redis):
    issuer = new_replica().wrap(provider)
    name = await name_of_first_claim(issuer, redis, provider)
    redis.leases[name] = b"dead", time.now + LEASE
    await issuer.issue(scope("s3://lake/dead"))
    assert LEASE <= time.now - NOON < LEASE + SECOND
    assert len(provider.calls) == 1


async def name_of_first_claim(issuer, redis, provider) -> str:
    """Return under which name a replica looks for ``s3://lake/dead``."""
    provider.failure = Unavailable("not now")
    with pytest.raises(Unavailable):
        await issuer.issue(scope("s3://lake/dead"))
    provider.failure = None
    provider.calls.clear()
    return str(redis.claims[-1])


async def test_a_lease_that_never_ends_does_not_hold_up_for_ever(new_replica, provider, time, redis):
    issuer = new_replica().wrap(provider)
    name = await name_of_first_claim(issuer, redis, provider)
    redis.leases[name] = b"forged", time.now + 1000 * HOUR
    credential = await issuer.issue(scope("s3://lake/dead"))
    assert time.now - NOON <= 3 * LEASE + SECOND
    # There was no value, so that it is stored without the lease.
    assert await new_replica().wrap(provider).issue(scope("s3://lake/dead")) == credential
    assert len(provider.calls) == 1


async def test_a_leader_that_lost_its_lease_gives_its_own_callers_what_it_has_and_stores_nothing_over_another(
    new_replica, provider, time, redis
):
    one, two = new_replica().wrap(provider), new_replica().wrap(provider)
    provider.gate.clear()
    task = asyncio.create_task(one.issue(scope()))
    while not provider.calls:
        await asyncio.sleep(0)
    redis.leases.clear()
    other = asyncio.create_task(two.issue(scope()))
    while len(provider.calls) < 2:
        await asyncio.sleep(0)
    redis.leases.clear()
    provider.gate.set()
    mine, theirs = await asyncio.gather(task, other)
    assert mine != theirs
    # The first to publish is found by everybody else.
    assert await new_replica().wrap(provider).issue(scope()) in {mine, theirs}
    assert len(provider.calls) == 2
    assert len(redis.values) == 1


async def test_a_leader_that_fails_lets_go_of_the_lease_at_once(new_replica, provider, time, redis):
    provider.failure = Unavailable("the storage does not answer")
    with pytest.raises(Unavailable):
        await new_replica().wrap(provider).issue(scope())
    assert not redis.leases
    provider.failure = None
    await new_replica().wrap(provider).issue(scope())
    assert time.now == NOON


async def test_a_short_lived_credential_is_not_stored(new_replica, provider, redis):
    provider.life = 10 * MINUTE
    await new_replica().wrap(provider).issue(scope())
    assert not redis.values
    assert not redis.leases


async def test_a_value_is_stored_until_nobody_may_be_handed_it(new_replica, provider, redis):
    await new_replica().wrap(provider).issue(scope())
    ((_, until),) = redis.values.values()
    assert until == NOON + 55 * MINUTE


async def test_a_provider_that_claims_a_long_life_is_not_believed_in_redis(new_replica, provider, redis):
    provider.life = 1000 * HOUR
    await new_replica().wrap(provider).issue(scope())
    ((_, until),) = redis.values.values()
    assert until == NOON + HOUR


async def test_a_value_with_too_little_left_is_minted_anew_and_replaced(new_replica, provider, redis, time):
    await started(new_replica, provider)
    await to_next_window(time)
    redis.values.clear()
    provider.calls.clear()
    provider.life = 35 * MINUTE
    await new_replica().wrap(provider).issue(scope())
    (name,) = redis.values
    time.move(6 * MINUTE)
    provider.life = None
    second = new_replica()
    fresh = await second.wrap(provider).issue(scope())
    assert list(redis.values) == [name]
    assert await new_replica().wrap(provider).issue(scope()) == fresh
    assert fresh.expires_at == time.now + HOUR
    assert len(provider.calls) == 2


@pytest.mark.parametrize(
    "poison",
    [b"garbage", b"\x01", b"\x01\xff", b"\x02" * 100, bytes(200)],
)
async def test_a_poisoned_value_is_a_miss_and_replaced(new_replica, provider, redis, poison):
    await new_replica().wrap(provider).issue(scope())
    for name, (_, until) in redis.values.items():
        redis.values[name] = poison, until
    second = new_replica()
    fresh = await second.wrap(provider).issue(scope())
    assert unreadable(second) == 1
    assert len(provider.calls) == 2
    assert await new_replica().wrap(provider).issue(scope()) == fresh


async def test_a_value_moved_from_another_key_is_a_miss(new_replica, provider, redis):
    issuer = new_replica().wrap(provider)
    await issuer.issue(scope(recipient="ann"))
    ((ann, sealed),) = redis.values.items()
    await issuer.issue(scope(recipient="bob"))
    (bob,) = redis.values.keys() - {ann}
    redis.values[bob] = sealed
    second = new_replica()
    mine = await second.wrap(provider).issue(scope(recipient="bob"))
    assert len(provider.calls) == 3
    assert provider.calls[-1].recipient == "bob"
    assert unreadable(second) == 1
    assert mine != await issuer.issue(scope(recipient="ann"))


async def test_somebody_who_poisons_it_again_and_again_holds_up_nobody(new_replica, provider, redis):
    await new_replica().wrap(provider).issue(scope())
    number = 0
    claim = redis.claim

    async def poisoned(lease, life):
        nonlocal number
        number += 1
        for name, (_, until) in redis.values.items():
            redis.values[name] = f"garbage {number}".encode(), until
        return await claim(lease, life)

    redis.claim = poisoned
    await new_replica().wrap(provider).issue(scope())
    assert len(provider.calls) == 2


async def test_requests_succeed_while_redis_is_out_and_it_is_used_when_it_is_back(
    new_replica, provider, redis, time
):
    redis.is_out = True
    one, two = new_replica(), new_replica()
    for replica in (one, two):
        await replica.wrap(provider).issue(scope())
    assert len(provider.calls) == 2
    redis.is_out = False
    asked = scope("s3://lake/u")
    assert await one.wrap(provider).issue(asked) == await two.wrap(provider).issue(asked)
    assert len(provider.calls) == 3


async def test_redis_that_goes_while_a_replica_mints_costs_nothing(new_replica, provider, redis):
    provider.gate.clear()
    task = asyncio.create_task(new_replica().wrap(provider).issue(scope()))
    await settle()
    redis.is_out = True
    provider.gate.set()
    await task
    assert len(provider.calls) == 1


async def test_a_full_redis_is_read_and_does_without_leases(new_replica, provider, redis):
    first = await new_replica().wrap(provider).issue(scope())
    redis.is_full = True
    assert await new_replica().wrap(provider).issue(scope()) == first
    await new_replica().wrap(provider).issue(scope("s3://lake/u"))
    assert len(provider.calls) == 2


async def test_everything_flushed_is_minted_once_more(new_replica, provider, redis):
    await new_replica().wrap(provider).issue(scope())
    redis.values.clear()
    redis.leases.clear()
    one, two = new_replica(), new_replica()
    assert await one.wrap(provider).issue(scope()) == await two.wrap(provider).issue(scope())
    assert len(provider.calls) == 2


async def test_after_a_rotation_of_keys_nothing_is_minted_anew(new_replica, provider, redis):
    first = await new_replica().wrap(provider).issue(scope())
    rotated = Keys(current=Key(id="k2", secret=b"n" * 32), previous=KEYS.current)
    assert await new_replica(keys=rotated).wrap(provider).issue(scope()) == first
    assert len(provider.calls) == 1
    assert not redis.leases

    foreign = Keys(current=Key(id="k3", secret=b"f" * 32))
    await new_replica(keys=foreign).wrap(provider).issue(scope())
    assert len(provider.calls) == 2


async def test_storages_with_other_settings_do_not_find_each_others_values(new_replica, provider):
    for options in ({}, {"role": "one"}, {"role": "two"}):
        await new_replica().wrap(provider, options=options).issue(scope())
    assert len(provider.calls) == 3


async def test_replicas_whose_clocks_differ_are_handed_nothing_that_has_too_little_left(
    provider, redis, time
):
    ahead = Time()
    ahead.now = NOON + 5 * MINUTE
    one, two = Replica(time, redis), Replica(ahead, redis)
    issuers = one.wrap(provider), two.wrap(provider)
    for _ in range(200):
        for issuer, clock in zip(issuers, (time, ahead), strict=True):
            credential = await issuer.issue(scope())
            assert credential.expires_at - clock.now >= 25 * MINUTE
            clock.move(timedelta(seconds=31))
            await settle()


async def test_in_need_the_old_credential_of_another_replica_is_handed_out(new_replica, provider, time):
    one = new_replica()
    old = await one.wrap(provider).issue(scope())
    await to_next_window(time)
    provider.failure = Unavailable("slow down", retry_after=timedelta(seconds=10))
    two = new_replica()
    issuer = two.wrap(provider)
    for _ in range(3):
        assert await issuer.issue(scope()) == old
    assert two.sources() == {"stale": 3}
    assert len(provider.calls) == 2


async def test_in_need_an_old_credential_of_another_replica_has_five_minutes_left(
    new_replica, provider, redis, time
):
    await started(new_replica, provider)
    await to_next_window(time)
    redis.values.clear()
    # So little that it ends soon after its window.
    provider.life = 31 * MINUTE
    old = await new_replica().wrap(provider).issue(scope())
    await to_next_window(time)
    # A Redis that keeps it for too long, or whose clock is slow.
    for name, (value, until) in redis.values.items():
        redis.values[name] = value, until + HOUR
    provider.failure = Unavailable("slow down", retry_after=SECOND)
    time.move(old.expires_at - time.now - 5 * MINUTE)
    assert await new_replica().wrap(provider).issue(scope()) == old
    time.move(SECOND)
    with pytest.raises(Unavailable):
        await new_replica().wrap(provider).issue(scope())
