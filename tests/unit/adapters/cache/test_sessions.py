from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.adapters.cache.drop import Drops
from gateway.adapters.cache.promise import before
from gateway.adapters.cache.vault import Vault
from gateway.adapters.credential_metrics import Outcome, RedisError, Source
from gateway.domain.credential import AzureDelegationKey, Credential
from gateway.domain.window import Window
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Sessions
from tests.unit.adapters.cache.doubles import (
    HOUR,
    KEYS,
    LEASE,
    MINUTE,
    NOON,
    WINDOW,
    Replica,
    Time,
    credential,
    settle,
)

SECOND = timedelta(seconds=1)
WIDTH = WINDOW.end - WINDOW.start
FOLLOWING = Window(WINDOW.end, WINDOW.end + WIDTH, WINDOW.expires_at + WIDTH)


class Vendor:
    """Mints sessions, each another, and counts them."""

    def __init__(self, time: Time) -> None:
        self.minted = 0
        self.failure: Exception | None = None
        # How long they live; None: as long as the window asks for.
        self.life: timedelta | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self._time = time

    async def obtain(self, sessions: Sessions, window: Window = WINDOW) -> Credential:
        return await sessions.obtain(window, lambda: self._mint(window))

    async def _mint(self, window: Window) -> Credential:
        self.minted += 1
        number = self.minted
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        expires_at = window.expires_at if self.life is None else self._time.now + self.life
        return credential(f"session {number}", expires_at)


@pytest.fixture
def vendor(time):
    return Vendor(time)


@pytest.fixture
def sessions(replica):
    return replica.sessions()


def by_source(replica: Replica) -> dict[str, int]:
    return {source.value: count for source, count in replica.url_series.sessions.items() if count}


def outcomes(replica: Replica) -> dict[str, int]:
    return {outcome.value: count for outcome, count in replica.url_series.session_mints.items() if count}


async def test_what_is_signed_in_a_window_is_signed_with_one_session(sessions, replica, vendor):
    port: Sessions = sessions
    first = await vendor.obtain(port)
    assert await vendor.obtain(port) is first
    assert await vendor.obtain(port, FOLLOWING) is not first
    assert await vendor.obtain(port) is first
    assert vendor.minted == 2
    assert by_source(replica) == {"memory": 2, "minted": 2}
    assert outcomes(replica) == {"minted": 2}


async def test_those_who_ask_at_once_share_one_mint_and_one_who_leaves_does_not_stop_it(sessions, vendor):
    vendor.gate.clear()
    tasks = [asyncio.create_task(vendor.obtain(sessions)) for _ in range(20)]
    await settle()
    tasks[0].cancel()
    await settle()
    vendor.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert len({id(result) for result in results[1:]}) == 1
    assert vendor.minted == 1


async def test_all_replicas_sign_with_the_same_one(new_replica, vendor):
    replicas = [new_replica() for _ in range(4)]
    vendor.gate.clear()
    opened = [each.sessions() for each in replicas]
    tasks = [asyncio.create_task(vendor.obtain(each)) for each in opened for _ in range(3)]
    await settle()
    vendor.gate.set()
    assert len(set(await asyncio.gather(*tasks))) == 1
    assert vendor.minted == 1
    assert sum(each.url_series.lease_waits for each in replicas) == 3


async def test_a_short_one_is_used_for_its_window_by_all(new_replica, vendor, time):
    vendor.life = 20 * MINUTE
    one, two = new_replica(), new_replica()
    first = await vendor.obtain(one.sessions())
    assert first.expires_at < WINDOW.expires_at
    time.move(9 * MINUTE)
    assert await vendor.obtain(one.sessions()) == await vendor.obtain(two.sessions()) == first
    assert vendor.minted == 1
    assert outcomes(one) == {"short": 1}


async def test_one_that_ends_within_its_window_is_replaced_by_all_before_it_does(new_replica, vendor, time):
    vendor.life = 8 * MINUTE
    one, two = new_replica(), new_replica()
    first = await vendor.obtain(one.sessions())
    assert await vendor.obtain(two.sessions()) == first
    time.move(3 * MINUTE + SECOND)
    second = await vendor.obtain(one.sessions())
    assert second != first
    assert await vendor.obtain(two.sessions()) == second
    assert vendor.minted == 2


async def test_one_of_an_hour_is_replaced_before_it_leaves_a_url_less_than_twenty_minutes(
    new_replica, vendor, time
):
    """Where URLs live for hours, a window is longer than a session of a role."""
    window = Window(NOON, NOON + 60 * MINUTE, NOON + 240 * MINUTE)
    vendor.life = 60 * MINUTE
    one, two = new_replica(), new_replica()
    first = await vendor.obtain(one.sessions(), window)
    time.move(40 * MINUTE)
    assert await vendor.obtain(one.sessions(), window) == first
    time.move(SECOND)
    second = await vendor.obtain(one.sessions(), window)
    assert second.expires_at == NOON + 100 * MINUTE + SECOND
    assert await vendor.obtain(two.sessions(), window) == second


async def test_one_that_is_given_for_next_to_no_time_is_used_and_not_kept(new_replica, vendor, redis):
    vendor.life = 4 * MINUTE
    sessions = new_replica().sessions()
    first = await vendor.obtain(sessions)
    assert first.expires_at == NOON + 4 * MINUTE
    assert await vendor.obtain(sessions) != first
    assert not redis.values


@pytest.mark.parametrize("life", [timedelta(0), -MINUTE])
async def test_one_that_has_expired_is_never_used(sessions, replica, vendor, life):
    vendor.life = life
    with pytest.raises(Unavailable, match="expired already"):
        await vendor.obtain(sessions)
    assert outcomes(replica) == {"expired": 1}
    vendor.life = None
    await vendor.obtain(sessions)


async def test_a_failure_is_not_kept(sessions, replica, vendor):
    vendor.failure = Unsupported("the role cannot be assumed")
    for _ in range(2):
        with pytest.raises(Unsupported):
            await vendor.obtain(sessions)
    vendor.failure = None
    await vendor.obtain(sessions)
    assert vendor.minted == 3
    assert outcomes(replica) == {"refused": 2, "minted": 1}


async def test_a_provider_that_throttles_is_left_alone(sessions, replica, vendor, time):
    vendor.failure = Unavailable("slow down", retry_after=10 * SECOND)
    for _ in range(5):
        with pytest.raises(Unavailable) as raised:
            await vendor.obtain(sessions)
        assert raised.value.retry_after is not None
    assert vendor.minted == 1
    vendor.failure = None
    time.move(10 * SECOND)
    await vendor.obtain(sessions)
    assert outcomes(replica) == {"throttled": 1, "minted": 1}


@pytest.mark.parametrize(
    "failure",
    [Unavailable("slow down", retry_after=MINUTE), Unavailable("no answer")],
    ids=["throttled", "out"],
)
async def test_in_need_the_session_of_the_window_before_still_signs(sessions, replica, vendor, time, failure):
    old = await vendor.obtain(sessions)
    vendor.failure = failure
    time.move(WINDOW.end - time.now)
    for _ in range(5):
        assert await vendor.obtain(sessions, FOLLOWING) is old
    # Asked once: while something does, the provider is left alone.
    assert vendor.minted == 2
    vendor.failure = None
    time.move(MINUTE)
    assert await vendor.obtain(sessions, FOLLOWING) is not old
    assert by_source(replica) == {"minted": 2, "stale": 5}


async def test_in_need_an_old_session_has_five_minutes_left(sessions, vendor, time):
    vendor.life = 12 * MINUTE
    await vendor.obtain(sessions)
    vendor.failure = Unavailable("no answer")
    time.move(7 * MINUTE + SECOND)
    with pytest.raises(Unavailable, match="no answer"):
        await vendor.obtain(sessions, FOLLOWING)


async def test_a_session_of_a_later_window_is_not_used_for_an_earlier_one(sessions, vendor, time):
    later = await vendor.obtain(sessions, WINDOW)
    # The clock was set back by a window.
    time.move(-WIDTH)
    assert await vendor.obtain(sessions, before(WINDOW)) is not later


async def test_when_redis_is_out_each_replica_has_its_own(new_replica, vendor, redis):
    redis.is_out = True
    one, two = new_replica(), new_replica()
    assert await vendor.obtain(one.sessions()) != await vendor.obtain(two.sessions())
    assert vendor.minted == 2
    assert by_source(one) == by_source(two) == {"minted": 1}


async def test_garbage_in_redis_is_a_miss_and_replaced(new_replica, vendor, redis):
    await vendor.obtain(new_replica().sessions())
    for name, (_, until) in redis.values.items():
        redis.values[name] = b"garbage", until
    two = new_replica()
    fresh = await vendor.obtain(two.sessions())
    assert await vendor.obtain(new_replica().sessions()) == fresh
    assert vendor.minted == 2
    assert two.redis_errors(RedisError.UNREADABLE) == 1


async def test_what_was_minted_under_other_settings_is_not_used(new_replica, vendor):
    replica = new_replica()
    old = await vendor.obtain(replica.sessions(options={"role": "one"}))
    for change in ({"options": {"role": "two"}}, {"revoked_at": NOON}, {"vendor": "s3"}, {"name": "pond"}):
        for process in (replica, new_replica()):
            assert await vendor.obtain(process.sessions(**change)) != old
    assert await vendor.obtain(replica.sessions(options={"role": "one"})) is old


async def test_a_mint_that_began_under_older_settings_is_not_used_by_the_newer(replica, vendor):
    vendor.gate.clear()
    before_reload = asyncio.create_task(vendor.obtain(replica.sessions(options={"role": "one"})))
    await settle()
    after = asyncio.create_task(vendor.obtain(replica.sessions(options={"role": "two"})))
    await settle()
    vendor.gate.set()
    assert await before_reload != await after
    assert vendor.minted == 2


async def test_a_reload_that_leaves_a_storage_as_it_is_loses_nothing(replica, vendor):
    first = await vendor.obtain(replica.sessions(options={"role": "one"}))
    assert await vendor.obtain(replica.sessions(options={"role": "one"})) is first


async def test_a_dropped_storage_has_no_sessions(new_replica, vendor, redis):
    await vendor.obtain(new_replica().sessions())
    assert await Drops(redis, Vault(KEYS)).drop_storage("lake") == 1
    await vendor.obtain(new_replica().sessions())
    assert vendor.minted == 2


async def test_what_was_being_minted_when_its_storage_was_dropped_is_found_by_nobody(
    new_replica, vendor, redis
):
    vendor.gate.clear()
    task = asyncio.create_task(vendor.obtain(new_replica().sessions()))
    await settle()
    await Drops(redis, Vault(KEYS)).drop_storage("lake")
    vendor.gate.set()
    old = await task
    assert await vendor.obtain(new_replica().sessions()) != old


async def test_a_dead_leader_costs_its_lease_and_no_more(new_replica, vendor, redis, time):
    sessions = new_replica().sessions()
    vendor.failure = Unavailable("not now")
    with pytest.raises(Unavailable):
        await vendor.obtain(sessions)
    vendor.failure = None
    redis.leases[redis.claims[-1]] = b"dead", time.now + LEASE
    await vendor.obtain(sessions)
    assert LEASE <= time.now - NOON < LEASE + SECOND
    assert vendor.minted == 2


async def test_a_key_that_azure_lends_is_shared_too(new_replica):
    key = AzureDelegationKey(
        oid="o", tid="t", start="s", expiry="e", service="b", version="2024-11-04", value="c2VjcmV0"
    )

    async def mint() -> Credential:
        return Credential(id="key-1", secret=key, expires_at=WINDOW.expires_at)

    async def never() -> Credential:
        raise AssertionError

    await new_replica().sessions().obtain(WINDOW, mint)
    assert (await new_replica().sessions().obtain(WINDOW, never)).secret == key


async def test_it_lies_in_redis_for_as_long_as_somebody_with_a_late_clock_may_sign_with_it(
    new_replica, vendor, redis
):
    vendor.life = 2 * HOUR
    await vendor.obtain(new_replica().sessions())
    ((_, until),) = redis.values.values()
    assert until == WINDOW.expires_at


def test_words_are_the_same_as_for_credentials(replica):
    assert set(replica.url_series.sessions) == set(Source)
    assert set(replica.url_series.session_mints) == set(Outcome)
