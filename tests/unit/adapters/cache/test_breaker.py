from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.cache.breaker import Breaker
from gateway.adapters.credential_metrics import CredentialMetrics, RedisError
from tests.unit.adapters.cache.doubles import settle
from tests.waiting import SECONDS


class Redis:
    """Answers probes as it is told, and keeps how long a prober slept in between."""

    def __init__(self) -> None:
        self.reason: RedisError | None = None
        self.probes = 0
        self.slept: list[float] = []
        self.wakes = asyncio.Semaphore(0)

    async def probe(self) -> RedisError | None:
        self.probes += 1
        return self.reason

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.wakes.acquire()

    async def wake(self, times: int = 1) -> None:
        for _ in range(times):
            self.wakes.release()
            await settle()


@pytest.fixture
def redis():
    return Redis()


@asynccontextmanager
async def breaking(redis: Redis):
    registry = CollectorRegistry()
    breaker = Breaker(redis.probe, CredentialMetrics(registry), sleep=redis.sleep, chance=lambda: 0.999)
    await breaker.start(0.01)
    try:
        yield breaker, lambda: registry.get_sample_value("sluice_cache_redis_up")
    finally:
        await breaker.close()


async def test_a_redis_that_answers_is_used_from_the_start_and_nothing_is_said(redis, caplog):
    async with breaking(redis) as (breaker, up):
        assert not breaker.is_open
        assert up() == 1
    assert caplog.text == ""


async def test_a_redis_that_is_down_at_the_start_is_no_error_and_is_used_when_it_comes(redis, caplog):
    redis.reason = RedisError.CONNECTION
    async with breaking(redis) as (breaker, up):
        assert (breaker.is_open, up()) == (True, 0)
        await redis.wake(3)
        assert caplog.text.count("redis is out of order (connection)") == 1
        redis.reason = None
        await redis.wake()
        assert (breaker.is_open, up()) == (False, 1)
    assert caplog.text.count("redis is back") == 1


async def test_failures_in_a_row_open_it_and_one_line_says_so(redis, caplog):
    async with breaking(redis) as (breaker, up):
        redis.reason = RedisError.TIMEOUT
        for _ in range(4):
            breaker.fail(RedisError.TIMEOUT)
        assert not breaker.is_open
        for _ in range(20):
            breaker.fail(RedisError.TIMEOUT)
        assert (breaker.is_open, up()) == (True, 0)
        await settle()
        assert len(caplog.records) == 1
        redis.reason = None
        await redis.wake()
        assert not breaker.is_open
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@pytest.mark.parametrize("reason", [RedisError.READ_ONLY, RedisError.AUTHENTICATION, RedisError.LOADING])
async def test_a_failure_that_holds_for_every_key_opens_it_at_once(redis, reason):
    async with breaking(redis) as (breaker, _):
        # Reads may well succeed between such failures.
        breaker.succeed()
        breaker.fail(reason)
        assert breaker.is_open


async def test_failures_with_successes_between_them_do_not(redis):
    async with breaking(redis) as (breaker, _):
        for _ in range(20):
            for _ in range(4):
                breaker.fail(RedisError.TIMEOUT)
            breaker.succeed()
        assert not breaker.is_open


async def test_after_it_is_back_it_takes_as_many_failures_again(redis):
    async with breaking(redis) as (breaker, _):
        for _ in range(5):
            breaker.fail(RedisError.TIMEOUT)
        await settle()
        assert not breaker.is_open
        breaker.fail(RedisError.TIMEOUT)
        assert not breaker.is_open


async def test_a_probe_that_breaks_does_not_break_the_end(redis):
    async def broken() -> None:
        raise ZeroDivisionError

    redis.probe = broken
    async with breaking(redis) as (breaker, up):
        assert (breaker.is_open, up()) == (True, 0)


async def test_who_closes_it_and_is_stopped_is_stopped(redis):
    async def stubborn(_: float) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await settle()

    redis.reason, redis.sleep = RedisError.CONNECTION, stubborn
    async with breaking(redis) as (breaker, _):
        closing = asyncio.create_task(breaker.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing


async def test_it_asks_less_and_less_often(redis):
    redis.reason = RedisError.LOADING
    async with breaking(redis):
        await redis.wake(7)
    assert [round(pause, 1) for pause in redis.slept] == [0.2, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]


async def test_close_ends_a_probe_that_swallows_a_cancellation(redis):
    async def probe() -> RedisError:
        redis.probes += 1
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return RedisError.CONNECTION

    breaker = Breaker(probe, CredentialMetrics(CollectorRegistry()), sleep=redis.sleep)
    await breaker.start(0.01)

    await asyncio.wait_for(breaker.close(), SECONDS)
    assert redis.probes == 1
