from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Unavailable
from tests.background import finish_background
from vendors.renewal import Renewed

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LEAST = 5 * MINUTE


@dataclass(frozen=True)
class Value:
    number: int
    expires_at: datetime | None


class Provider:
    """Gives ``given``, however much is asked for; waits at ``gate`` where there is one."""

    def __init__(self, given: timedelta) -> None:
        self.now = NOON
        self.given: timedelta | None = given
        self.asked: list[timedelta] = []
        self.fault: Exception | None = None
        self.gate: asyncio.Event | None = None

    def clock(self) -> datetime:
        return self.now

    async def fetch(self, life: timedelta) -> Value:
        self.asked.append(life)
        number = len(self.asked)
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return Value(number, None if self.given is None else self.now + self.given)


def made(given: timedelta = 4 * HOUR) -> tuple[Provider, Renewed[Value]]:
    provider = Provider(given)
    return provider, Renewed(provider.fetch, ahead=30 * MINUTE, least=LEAST, clock=provider.clock)


async def test_value_is_reused_while_it_is_not_due():
    provider, renewed = made()
    first = await renewed.get(HOUR)
    provider.now += 2 * HOUR + 29 * MINUTE

    assert await renewed.get(HOUR) == first
    await finish_background()
    assert provider.asked == [HOUR]


async def test_value_that_is_due_is_served_while_the_next_one_is_on_its_way():
    provider, renewed = made()
    first = await renewed.get(HOUR)
    provider.now += 2 * HOUR + 31 * MINUTE
    provider.gate = asyncio.Event()

    # None of these could return if it waited for the provider, which does not answer yet.
    assert [await renewed.get(HOUR) for _ in range(20)] == [first] * 20
    await asyncio.sleep(0)
    assert len(provider.asked) == 2
    provider.gate.set()
    await finish_background()

    assert (await renewed.get(HOUR)).number == 2
    assert len(provider.asked) == 2


async def test_value_that_is_too_short_is_waited_for():
    provider, renewed = made()
    await renewed.get(HOUR)
    provider.now += 3 * HOUR + MINUTE

    assert (await renewed.get(HOUR)).number == 2


async def test_failed_renewal_leaves_the_old_value_and_the_provider_alone_for_a_while(caplog):
    provider, renewed = made()
    first = await renewed.get(HOUR)
    provider.now += 2 * HOUR + 40 * MINUTE
    provider.fault = Unavailable("down", retry_after=5 * MINUTE)
    for _ in range(3):
        assert await renewed.get(HOUR) == first
        await finish_background()
    assert len(provider.asked) == 2
    assert caplog.text.count("down") == 1
    provider.now += 4 * MINUTE
    await renewed.get(HOUR)
    await finish_background()
    assert len(provider.asked) == 2

    provider.now += MINUTE
    provider.fault = None
    assert await renewed.get(HOUR) == first
    await finish_background()

    assert (await renewed.get(HOUR)).number == 3


async def test_pause_ends_with_a_clock_that_was_set_back():
    provider, renewed = made()
    await renewed.get(HOUR)
    provider.now += 2 * HOUR + 50 * MINUTE
    provider.fault = Unavailable("down")
    await renewed.get(HOUR)
    await finish_background()
    provider.now -= 15 * MINUTE
    await renewed.get(HOUR)
    await finish_background()

    assert len(provider.asked) == 3


@pytest.mark.parametrize("left", [59 * MINUTE, LEAST + MINUTE])
async def test_value_that_is_too_short_is_served_when_renewal_fails(left):
    provider, renewed = made()
    first = await renewed.get(HOUR)
    provider.now += 4 * HOUR - left
    provider.fault = Unavailable("down")

    assert await renewed.get(HOUR) == first
    assert len(provider.asked) == 2


@pytest.mark.parametrize("left", [LEAST, timedelta(0), -HOUR])
async def test_value_that_is_at_its_end_is_never_served(left):
    provider, renewed = made()
    await renewed.get(HOUR)
    provider.now += 4 * HOUR - left
    provider.fault = Unavailable("down")

    for _ in range(2):
        with pytest.raises(Unavailable, match="down"):
            await renewed.get(MINUTE)
    assert len(provider.asked) == 3


async def test_value_that_ends_while_its_renewal_fails_slowly_is_not_served():
    provider, renewed = made()
    await renewed.get(HOUR)
    provider.now += 3 * HOUR + MINUTE
    provider.gate = asyncio.Event()
    provider.fault = Unavailable("down")
    task = asyncio.create_task(renewed.get(HOUR))
    await asyncio.sleep(0)
    provider.now += HOUR
    provider.gate.set()

    with pytest.raises(Unavailable, match="down"):
        await task


@given(
    spans=st.lists(st.tuples(st.integers(0, 90), st.integers(1, 120), st.booleans()), max_size=12),
    given_minutes=st.integers(0, 300),
)
async def test_nothing_that_is_served_has_expired(spans, given_minutes):
    provider, renewed = made(given_minutes * MINUTE)
    for passed, life, is_down in spans:
        provider.now += passed * MINUTE
        provider.fault = Unavailable("down") if is_down else None
        try:
            value = await renewed.get(life * MINUTE)
        except Unavailable:
            assert is_down or not given_minutes
        else:
            assert value.expires_at is not None
            assert value.expires_at > provider.now
        await finish_background()


async def test_failure_is_not_kept():
    provider, renewed = made()
    provider.fault = Unavailable("down")
    with pytest.raises(Unavailable):
        await renewed.get(HOUR)
    provider.fault = None

    assert (await renewed.get(HOUR)).number == 2


async def test_failure_that_nobody_foresaw_is_logged_without_its_words(caplog):
    provider, renewed = made()
    first = await renewed.get(HOUR)
    provider.now += 2 * HOUR + 40 * MINUTE
    provider.fault = RuntimeError("hush")

    assert await renewed.get(HOUR) == first
    await finish_background()
    assert "RuntimeError" in caplog.text
    assert "hush" not in caplog.text


async def test_value_that_has_expired_already_is_not_taken(caplog):
    _, renewed = made(given=-MINUTE)

    with pytest.raises(Unavailable):
        await renewed.get(HOUR)
    assert "compare the clocks" in caplog.text


async def test_value_without_an_end_is_not_kept():
    provider, renewed = made()
    provider.given = None

    assert [(await renewed.get(HOUR)).number for _ in range(2)] == [1, 2]


async def test_many_who_ask_at_once_are_served_by_one_fetch():
    provider, renewed = made()
    provider.gate = asyncio.Event()
    waiting = [asyncio.create_task(renewed.get(HOUR)) for _ in range(50)]
    await asyncio.sleep(0)
    provider.gate.set()

    assert {value.number for value in await asyncio.gather(*waiting)} == {1}
    assert provider.asked == [HOUR]


async def test_many_who_ask_at_once_share_a_failure():
    provider, renewed = made()
    provider.gate = asyncio.Event()
    provider.fault = Unavailable("down")
    waiting = [asyncio.create_task(renewed.get(HOUR)) for _ in range(50)]
    await asyncio.sleep(0)
    provider.gate.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)

    assert all(isinstance(one, Unavailable) for one in found)
    assert provider.asked == [HOUR]


async def test_cancelled_caller_does_not_stop_the_others():
    provider, renewed = made()
    provider.gate = asyncio.Event()
    first, second = (asyncio.create_task(renewed.get(HOUR)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    provider.gate.set()

    assert (await second).number == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_provider_that_gives_less_than_asked_is_not_asked_every_time():
    provider, renewed = made(given=20 * MINUTE)
    first = await renewed.get(HOUR)
    provider.now += 4 * MINUTE
    assert await renewed.get(HOUR) == first
    await finish_background()
    assert provider.asked == [HOUR]
    provider.now += 7 * MINUTE

    assert (await renewed.get(HOUR)).number == 2


async def test_longer_life_than_before_is_asked_for():
    provider, renewed = made()
    await renewed.get(HOUR)
    await renewed.get(6 * HOUR)
    await renewed.get(HOUR)

    assert provider.asked == [HOUR, 6 * HOUR]


async def test_longer_life_does_not_wait_for_a_shorter_one_that_is_on_its_way():
    provider, renewed = made(given=24 * HOUR)
    provider.gate = asyncio.Event()
    waiting = [asyncio.create_task(renewed.get(life)) for life in (HOUR, 6 * HOUR, HOUR)]
    await asyncio.sleep(0)
    provider.gate.set()

    assert [value.number for value in await asyncio.gather(*waiting)] == [1, 2, 2]
    assert (await renewed.get(6 * HOUR)).number == 2
    assert provider.asked == [HOUR, 6 * HOUR]


async def test_shorter_life_that_comes_late_does_not_replace_a_longer_one():
    provider, renewed = made(given=24 * HOUR)
    gate = provider.gate = asyncio.Event()
    late = asyncio.create_task(renewed.get(HOUR))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    provider.gate = None
    await renewed.get(6 * HOUR)
    gate.set()

    assert (await late).number == 1
    assert (await renewed.get(6 * HOUR)).number == 2


async def test_renewal_asks_for_the_longest_life_so_far():
    provider, renewed = made(given=24 * HOUR)
    await renewed.get(6 * HOUR)
    provider.now += 23 * HOUR + 30 * MINUTE
    await renewed.get(HOUR)

    assert provider.asked == [6 * HOUR, 6 * HOUR]


async def test_clock_that_was_set_back_gets_a_new_value():
    provider, renewed = made()
    await renewed.get(HOUR)
    provider.now -= HOUR

    assert (await renewed.get(HOUR)).number == 2


async def test_forgotten_value_is_not_served_again():
    provider, renewed = made()
    await renewed.get(HOUR)
    renewed.forget()
    provider.fault = Unavailable("down")

    with pytest.raises(Unavailable):
        await renewed.get(HOUR)


async def test_value_that_was_on_its_way_when_all_was_forgotten_reaches_nobody():
    provider, renewed = made()
    gate = provider.gate = asyncio.Event()
    task = asyncio.create_task(renewed.get(HOUR))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    renewed.forget()
    provider.gate = None
    newer = await renewed.get(HOUR)
    gate.set()

    assert newer.number == 2
    assert await task == newer
    assert await renewed.get(HOUR) == newer
