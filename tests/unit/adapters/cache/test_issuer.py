from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from gateway.errors import Unavailable, Unsupported
from gateway.ports import CredentialIssuer
from tests.unit.adapters.cache.doubles import (
    HOUR,
    MINUTE,
    NOON,
    Replica,
    scope,
    settle,
    to_next_window,
    windows,
)
from tests.waiting import SECONDS

SECOND = timedelta(seconds=1)


@pytest.fixture
def issuer(replica, provider):
    return replica.wrap(provider)


# How long a secret's file is not read again.
REREAD = timedelta(minutes=1)


async def test_it_is_the_issuer_that_it_wraps(replica, provider):
    issuer: CredentialIssuer = replica.wrap(provider)
    assert issuer.names_recipients is True
    provider.names_recipients = False
    assert replica.wrap(provider).names_recipients is False
    assert (await issuer.issue(scope())).expires_at == NOON + HOUR


async def test_what_is_asked_for_in_one_window_shares_one_credential(issuer, replica, provider, time):
    first = await issuer.issue(scope())
    await to_next_window(time)
    start = await issuer.issue(scope())
    assert start != first
    time.move((rhythm := await windows()).width - rhythm.ahead - SECOND)

    assert await issuer.issue(scope()) is start
    assert len(provider.calls) == 2
    assert replica.sources() == {"memory": 1, "minted": 2}


async def test_nothing_is_handed_out_with_less_than_half_its_life_left(issuer, replica, provider, time):
    for _ in range(2000):
        credential = await issuer.issue(scope())
        await settle()
        assert credential.expires_at - time.now >= 30 * MINUTE
        time.move(timedelta(seconds=13))
    assert replica.near_end == 0
    # 26,000 seconds are 17 windows of 25 minutes, and each but the first is asked for ahead of time.
    assert len(provider.calls) <= 19


async def test_twenty_minutes_are_left_where_the_life_allows(issuer, provider, time):
    asked = scope(life=30 * MINUTE)
    for _ in range(500):
        assert (await issuer.issue(asked)).expires_at - time.now >= 20 * MINUTE
        await settle()
        time.move(timedelta(seconds=7))


async def test_a_short_life_that_was_asked_for_is_not_near_its_end(issuer, replica, provider, time):
    asked = scope(life=15 * MINUTE)
    for _ in range(200):
        assert (await issuer.issue(asked)).expires_at > time.now
        await settle()
        time.move(timedelta(seconds=7))
    assert replica.near_end == 0


async def test_spellings_of_a_location_share_and_locations_recipients_and_revocations_do_not(
    issuer, provider
):
    for spelling in ("s3://lake/t", "s3a://lake/t", "s3n://lake/t/"):
        await issuer.issue(scope(spelling))
    assert len(provider.calls) == 1
    others = scope("s3://lake/u"), scope(recipient="bob"), scope(revoked_at=NOON), scope(life=2 * HOUR)
    for other in others:
        await issuer.issue(other)
    assert set(provider.calls) == {scope(), *others}


async def test_storages_with_other_settings_share_nothing(replica, provider):
    for options in ({}, {"region": "eu"}, {"secret": {"value": "one"}}, {"secret": {"value": "two"}}):
        await replica.wrap(provider, options=options).issue(scope())
    await replica.wrap(provider, revoked_at=NOON).issue(scope())
    assert len(provider.calls) == 5


async def test_a_reload_that_leaves_a_storage_as_it_is_loses_nothing(replica, provider):
    first = await replica.wrap(provider, options={"region": "eu"}).issue(scope())
    assert await replica.wrap(provider, options={"region": "eu"}).issue(scope()) is first


async def test_a_secret_replaced_on_disk_is_another_storage(replica, provider, time, tmp_path):
    file = tmp_path / "secret"
    file.write_text("one")
    options = {"secret": {"file": str(file)}}
    issuer = replica.wrap(provider, options=options)
    first = await issuer.issue(scope())
    file.write_text("two")
    await to_next_window(time, options=options)
    time.move(REREAD)
    second = await issuer.issue(scope())
    assert first != second
    assert await issuer.issue(scope()) is second
    assert len(provider.calls) == 2


async def test_a_secret_replaced_on_disk_counts_within_a_minute_however_often_the_old_one_is_asked_for(
    replica, provider, time, tmp_path
):
    file = tmp_path / "secret"
    file.write_text("one")
    options = {"secret": {"file": str(file)}}
    issuer = replica.wrap(provider, options=options)
    await issuer.issue(scope())
    await to_next_window(time, options=options)
    # The file is read now, wherever the window began after the first reading.
    time.move(REREAD)
    old = await issuer.issue(scope())
    file.write_text("two")
    for _ in range(59):
        assert await issuer.issue(scope()) is old
        time.move(SECOND)
    time.move(SECOND)

    new = await issuer.issue(scope())
    assert new != old
    assert await issuer.issue(scope()) is new
    assert len(provider.calls) == 3


async def test_a_secret_that_stays_as_it_is_costs_no_mint(replica, provider, time, tmp_path):
    file = tmp_path / "secret"
    file.write_text("one")
    options = {"secret": {"file": str(file)}}
    issuer = replica.wrap(provider, options=options)
    await issuer.issue(scope())
    await to_next_window(time, options=options)
    first = await issuer.issue(scope())
    for _ in range(5):
        time.move(timedelta(minutes=1))
        assert await issuer.issue(scope()) is first
    assert len(provider.calls) == 2


async def test_those_who_ask_at_once_share_one_mint_and_one_who_leaves_does_not_stop_it(
    issuer, replica, provider
):
    provider.gate.clear()
    tasks = [asyncio.create_task(issuer.issue(scope())) for _ in range(50)]
    await settle()
    tasks[0].cancel()
    tasks[7].cancel()
    await settle()
    provider.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert len(provider.calls) == 1
    assert [type(result) for result in results].count(asyncio.CancelledError) == 2
    assert len({id(result) for result in results if not isinstance(result, BaseException)}) == 1


async def test_when_all_leave_the_mint_still_ends_and_is_kept(issuer, provider):
    provider.gate.clear()
    task = asyncio.create_task(issuer.issue(scope()))
    await settle()
    task.cancel()
    await settle()
    provider.gate.set()
    await settle()
    await issuer.issue(scope())
    assert len(provider.calls) == 1


async def test_a_slow_mint_holds_up_nobody_who_asks_for_something_else(issuer, provider):
    provider.gate.clear()
    slow = asyncio.create_task(issuer.issue(scope("s3://lake/slow")))
    await settle()
    provider.gate.set()
    await issuer.issue(scope("s3://lake/quick"))
    await slow


async def test_a_failure_is_shared_by_those_who_wait_and_not_kept(issuer, provider):
    provider.gate.clear()
    provider.failure = Unavailable("the storage does not answer")
    tasks = [asyncio.create_task(issuer.issue(scope())) for _ in range(3)]
    await settle()
    provider.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 3
    assert len(provider.calls) == 1

    provider.failure = None
    await issuer.issue(scope())
    assert len(provider.calls) == 2


async def test_a_refusal_is_passed_on_and_asked_for_again(issuer, replica, provider):
    provider.failure = Unsupported("the path cannot be expressed")
    for _ in range(2):
        with pytest.raises(Unsupported):
            await issuer.issue(scope())
    assert len(provider.calls) == 2
    assert replica.outcomes() == {"refused": 2}


async def test_a_credential_that_is_given_for_too_short_a_time_is_handed_out_and_not_kept(
    issuer, replica, provider, caplog
):
    provider.life = 29 * MINUTE
    for _ in range(3):
        assert (await issuer.issue(scope())).expires_at == NOON + 29 * MINUTE
    assert len(provider.calls) == 3
    assert replica.outcomes() == {"short": 3}
    assert replica.near_end == 3
    assert caplog.text.count("29 minutes only") == 1


async def test_a_credential_given_for_less_than_asked_is_kept_as_long_as_half_of_what_was_asked_is_left(
    issuer, provider, time
):
    provider.life = 40 * MINUTE
    first = await issuer.issue(scope())
    time.move(10 * MINUTE)
    kept = await issuer.issue(scope())
    assert kept.expires_at - time.now >= 30 * MINUTE
    time.move(SECOND)
    assert await issuer.issue(scope()) is not first


@pytest.mark.parametrize("life", [timedelta(0), -MINUTE, -365 * 24 * HOUR])
async def test_a_credential_that_has_expired_is_never_handed_out(issuer, replica, provider, life):
    provider.life = life
    with pytest.raises(Unavailable, match="expired already"):
        await issuer.issue(scope())
    assert replica.outcomes() == {"expired": 1}
    provider.life = None
    await issuer.issue(scope())


async def test_a_provider_that_claims_a_long_life_is_asked_anew_in_the_next_window(
    issuer, replica, provider, time
):
    provider.life = 1000 * HOUR
    await issuer.issue(scope())
    await to_next_window(time)
    await issuer.issue(scope())
    assert len(provider.calls) == 2


@pytest.mark.parametrize("jump", [-24 * HOUR, -MINUTE, 29 * MINUTE, HOUR, 24 * HOUR])
async def test_a_clock_that_jumps_brings_out_nothing_that_has_expired(issuer, provider, time, jump):
    await issuer.issue(scope())
    time.now += jump
    credential = await issuer.issue(scope())
    assert credential.expires_at - time.now >= 30 * MINUTE
    time.now -= jump
    credential = await issuer.issue(scope())
    assert credential.expires_at - time.now >= 30 * MINUTE


class TestRefreshAhead:
    async def test_nobody_waits_when_a_window_turns(self, issuer, replica, provider, time):
        await issuer.issue(scope())
        await to_next_window(time)
        await issuer.issue(scope())
        time.move((await windows()).width - SECOND)
        provider.gate.clear()
        before = await asyncio.wait_for(issuer.issue(scope()), SECONDS)
        await settle()
        assert len(provider.calls) == 3
        provider.gate.set()
        await settle()

        time.move(SECOND)
        after = await issuer.issue(scope())
        assert after != before
        assert len(provider.calls) == 3
        assert replica.metrics.storage("lake").refreshes == 1

    async def test_it_happens_once_and_only_near_the_end(self, issuer, replica, provider, time):
        await issuer.issue(scope())
        await to_next_window(time)
        await issuer.issue(scope())
        time.move((rhythm := await windows()).width - rhythm.ahead)
        for _ in range(3):
            await issuer.issue(scope())
            await settle()
        assert len(provider.calls) == 2
        # By chance it begins in the last three fifths of the time ahead.
        time.move((await windows()).ahead * 0.4)
        for _ in range(3):
            await issuer.issue(scope())
            await settle()
        assert len(provider.calls) == 3

    async def test_a_request_at_the_turn_joins_the_refresh_that_is_under_way(
        self, issuer, replica, provider, time
    ):
        await issuer.issue(scope())
        await to_next_window(time)
        await issuer.issue(scope())
        time.move((await windows()).width - SECOND)
        provider.gate.clear()
        await issuer.issue(scope())
        await settle()
        time.move(SECOND)
        task = asyncio.create_task(issuer.issue(scope()))
        await settle()
        assert len(provider.calls) == 3
        provider.gate.set()
        await task
        assert len(provider.calls) == 3

    async def test_a_refresh_that_fails_is_tried_again_after_a_while_and_hurts_nobody(
        self, issuer, replica, provider, time
    ):
        await issuer.issue(scope())
        await to_next_window(time)
        await issuer.issue(scope())
        time.move((rhythm := await windows()).width - rhythm.ahead / 2)
        provider.failure = Unavailable("the storage does not answer")
        for _ in range(20):
            await issuer.issue(scope())
            await settle()
        assert len(provider.calls) == 3
        provider.failure = None
        time.move((await windows()).ahead * 0.45)
        await issuer.issue(scope())
        await settle()
        assert len(provider.calls) == 4

    async def test_a_bug_in_a_refresh_is_not_lost_and_its_words_are_not_repeated(
        self, issuer, replica, provider, time, caplog
    ):
        await issuer.issue(scope())
        await to_next_window(time)
        await issuer.issue(scope())
        time.move((await windows()).width - SECOND)
        provider.failure = TypeError("unexpected answer: SecretKey hunter2")
        provider.failure.__cause__ = ValueError("hunter2")
        with caplog.at_level(logging.DEBUG):
            await issuer.issue(scope())
            await settle()
        (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert "lake" in record.message
        assert "TypeError" in record.message
        # Where it was, and not what it said.
        assert "doubles.py" in record.message
        assert record.exc_info is None
        assert "hunter2" not in caplog.text

    async def test_there_are_only_so_many_at_once(self, issuer, replica, provider, time):
        scopes = [scope(f"s3://lake/{number}") for number in range(40)]
        for each in scopes:
            await issuer.issue(each)
        provider.gate.clear()
        calls = len(provider.calls)
        ends = {each: (await windows(each)).turn_at(time.now).end for each in scopes}
        # Each key has its own end; within one width, all are near theirs at some time.
        for _ in range(25 * 6):
            for each in scopes:
                if time.now < ends[each]:
                    await issuer.issue(each)
            await settle()
            time.move(timedelta(seconds=10))
        assert len(provider.calls) - calls == 8
        await replica.stop()


class TestThrottled:
    @pytest.fixture
    async def old(self, issuer, replica, time):
        """A credential of the window before, with nearly half an hour left."""
        await issuer.issue(scope())
        await to_next_window(time)
        old = await issuer.issue(scope())
        await to_next_window(time)
        return old

    async def test_the_old_credential_is_handed_out_and_the_provider_left_alone(
        self, issuer, replica, provider, time, old
    ):
        provider.failure = Unavailable("slow down", retry_after=timedelta(seconds=10))
        for _ in range(20):
            assert await issuer.issue(scope()) is old
        assert len(provider.calls) == 3
        assert replica.sources()["stale"] == 20
        assert replica.outcomes()["throttled"] == 1

        time.move(timedelta(seconds=11))
        provider.failure = None
        assert await issuer.issue(scope()) is not old

    async def test_not_in_its_last_five_minutes(self, issuer, provider, time, old):
        provider.failure = Unavailable("slow down", retry_after=timedelta(seconds=1))
        time.move(old.expires_at - time.now - 5 * MINUTE)
        assert await issuer.issue(scope()) is old
        time.move(SECOND)
        with pytest.raises(Unavailable):
            await issuer.issue(scope())

    async def test_who_has_no_old_one_is_told_when_to_come_again(self, issuer, provider, time):
        provider.failure = Unavailable("slow down", retry_after=timedelta(seconds=10))
        with pytest.raises(Unavailable):
            await issuer.issue(scope())
        time.move(timedelta(seconds=4))
        with pytest.raises(Unavailable) as caught:
            await issuer.issue(scope("s3://lake/other"))
        assert caught.value.retry_after == timedelta(seconds=6)
        assert len(provider.calls) == 1

    async def test_another_storage_is_not_left_alone(self, issuer, replica, provider):
        provider.failure = Unavailable("slow down", retry_after=timedelta(seconds=10))
        with pytest.raises(Unavailable):
            await issuer.issue(scope())
        provider.failure = None
        await replica.wrap(provider, name="pond").issue(scope())

    async def test_a_provider_that_is_down_is_asked_now_and_then_while_the_old_one_does(
        self, issuer, provider, time, old
    ):
        provider.failure = Unavailable("the storage does not answer")
        for _ in range(20):
            assert await issuer.issue(scope()) is old
        assert len(provider.calls) == 3
        time.move(timedelta(seconds=6))
        assert await issuer.issue(scope()) is old
        assert len(provider.calls) == 4
        # Other keys are asked for all the same: it may be down for this one alone.
        with pytest.raises(Unavailable):
            await issuer.issue(scope("s3://lake/other"))
        assert len(provider.calls) == 5

    async def test_a_refusal_for_good_is_not_covered_up(self, issuer, provider, old):
        provider.failure = Unsupported("the role is gone")
        with pytest.raises(Unsupported):
            await issuer.issue(scope())

    async def test_an_old_credential_from_before_a_revocation_is_not_handed_out(self, issuer, provider, old):
        provider.failure = Unavailable("slow down", retry_after=timedelta(seconds=10))
        with pytest.raises(Unavailable):
            await issuer.issue(scope(revoked_at=NOON))

    async def test_an_old_credential_of_another_recipient_is_not_handed_out(self, issuer, provider, old):
        provider.failure = Unavailable("slow down", retry_after=timedelta(seconds=10))
        with pytest.raises(Unavailable):
            await issuer.issue(scope(recipient="bob"))


async def test_memory_is_bounded_however_many_keys_are_asked_for(time, provider):
    replica = Replica(time, None, memory=100_000)
    issuer = replica.wrap(provider)
    for number in range(500):
        await issuer.issue(scope(f"s3://lake/{number}"))
        assert replica.shared.memory.size <= 100_000
    # The latest entries are there: their requests reach no provider.
    found = 0
    for number in reversed(range(500)):
        await issuer.issue(scope(f"s3://lake/{number}"))
        if len(provider.calls) > 500:
            break
        found += 1
    assert 5 < found < 50


async def test_the_sizes_that_memory_is_bounded_by_are_not_too_small(issuer, replica, time):
    sizes = []
    for _ in range(4):
        await issuer.issue(scope())
        sizes.append(replica.shared.memory.size)
        await to_next_window(time)
    # An entry holds the credentials of three windows.
    assert sizes[0] < sizes[1] < sizes[2] == sizes[3]
    assert sizes[2] > 3 * 1000
