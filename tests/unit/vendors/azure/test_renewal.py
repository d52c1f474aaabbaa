from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from gateway.errors import Unavailable
from tests.unit.vendors.azure.doubles import NOON, FakeClock
from vendors.azure.renewal import Renewed

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Value:
    number: int
    expires_at: datetime


class Provider:
    def __init__(self, clock: FakeClock, given: timedelta) -> None:
        self.clock = clock
        self.given = given
        self.calls = 0
        self.fault: Unavailable | None = None
        self.gate: asyncio.Event | None = None

    async def fetch(self, life: timedelta) -> Value:
        self.calls += 1
        number = self.calls
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return Value(number, self.clock.now + self.given)


def made(given: timedelta = 4 * HOUR) -> tuple[FakeClock, Provider, Renewed[Value]]:
    clock = FakeClock()
    provider = Provider(clock, given)
    return clock, provider, Renewed(provider.fetch, ahead=30 * MINUTE, clock=clock)


async def test_value_is_reused():
    clock, provider, renewed = made()
    first = await renewed.get(HOUR)
    clock.now += 2 * HOUR

    assert await renewed.get(HOUR) == first
    assert provider.calls == 1


async def test_value_is_renewed_before_what_is_asked_for_would_outlive_it():
    clock, _, renewed = made()
    await renewed.get(HOUR)
    clock.now += 2 * HOUR + 31 * MINUTE

    assert (await renewed.get(HOUR)).number == 2


async def test_failed_renewal_leaves_the_old_value_and_the_provider_alone_for_a_while():
    clock, provider, renewed = made()
    first = await renewed.get(HOUR)
    clock.now += 2 * HOUR + 40 * MINUTE
    provider.fault = Unavailable("down", retry_after=5 * MINUTE)

    assert await renewed.get(HOUR) == first
    assert await renewed.get(HOUR) == first
    assert provider.calls == 2
    clock.now += 5 * MINUTE
    await renewed.get(HOUR)
    assert provider.calls == 3


async def test_value_that_is_too_short_is_not_served_when_renewal_fails():
    clock, provider, renewed = made()
    await renewed.get(HOUR)
    clock.now += 3 * HOUR + MINUTE
    provider.fault = Unavailable("down")

    with pytest.raises(Unavailable, match="down"):
        await renewed.get(HOUR)


async def test_failure_is_not_kept():
    _, provider, renewed = made()
    provider.fault = Unavailable("down")
    with pytest.raises(Unavailable):
        await renewed.get(HOUR)
    provider.fault = None

    assert (await renewed.get(HOUR)).number == 2


async def test_many_who_ask_at_once_are_served_by_one_fetch():
    _, provider, renewed = made()
    provider.gate = asyncio.Event()
    waiting = [asyncio.create_task(renewed.get(HOUR)) for _ in range(50)]
    await asyncio.sleep(0)
    provider.gate.set()

    assert {value.number for value in await asyncio.gather(*waiting)} == {1}
    assert provider.calls == 1


async def test_cancelled_caller_does_not_stop_the_others():
    _, provider, renewed = made()
    provider.gate = asyncio.Event()
    first, second = (asyncio.create_task(renewed.get(HOUR)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    provider.gate.set()

    assert (await second).expires_at == NOON + 4 * HOUR
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_provider_that_gives_less_than_asked_is_not_asked_every_time():
    clock, provider, renewed = made(given=20 * MINUTE)
    await renewed.get(HOUR)
    clock.now += 9 * MINUTE
    await renewed.get(HOUR)
    assert provider.calls == 1
    clock.now += 2 * MINUTE
    await renewed.get(HOUR)

    assert provider.calls == 2


async def test_longer_life_than_before_is_asked_for():
    _, provider, renewed = made()
    await renewed.get(HOUR)
    await renewed.get(6 * HOUR)

    assert provider.calls == 2


async def test_expired_value_is_never_served():
    clock, provider, renewed = made(given=20 * MINUTE)
    await renewed.get(HOUR)
    clock.now += 20 * MINUTE
    provider.fault = Unavailable("down")

    with pytest.raises(Unavailable):
        await renewed.get(MINUTE)


async def test_clock_that_was_set_back_gets_a_new_value():
    clock, _, renewed = made()
    await renewed.get(HOUR)
    clock.now -= HOUR

    assert (await renewed.get(HOUR)).number == 2


async def test_forgotten_value_is_not_served_again():
    _, _, renewed = made()
    await renewed.get(HOUR)
    renewed.forget()

    assert (await renewed.get(HOUR)).number == 2


async def test_value_that_was_on_its_way_when_all_was_forgotten_is_not_kept():
    _, provider, renewed = made()
    provider.gate = asyncio.Event()
    task = asyncio.create_task(renewed.get(HOUR))
    await asyncio.sleep(0)
    renewed.forget()
    provider.gate.set()
    await task

    assert (await renewed.get(HOUR)).number == 2
