from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.errors import Unavailable
from vendors.gcp.provider_turns import ProviderTurns


class Time:
    def __init__(self) -> None:
        self.elapsed = 0.0

    def monotonic(self) -> float:
        return self.elapsed


class Calls:
    """Calls under way, each of which is answered when the test says so."""

    def __init__(self, turns: ProviderTurns) -> None:
        self._turns = turns
        self.underway: list[asyncio.Future[None]] = []

    async def make(self) -> None:
        async with self._turns.taken():
            answer = asyncio.get_running_loop().create_future()
            self.underway.append(answer)
            await answer

    async def start(self, count: int) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self.make()) for _ in range(count)]
        await settle()
        return tasks

    async def end(self, failure: Exception | None = None) -> None:
        """Answer all that are under way, or fail them."""
        for answer in self.underway:
            if failure is None:
                answer.set_result(None)
            else:
                answer.set_exception(failure)
        self.underway.clear()
        await settle()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def calls(time):
    return Calls(ProviderTurns(2, monotonic=time.monotonic))


async def test_only_so_many_are_under_way_at_once(calls):
    tasks = await calls.start(5)
    for underway in (2, 2, 1, 0):
        assert len(calls.underway) == underway
        await calls.end()
    await asyncio.gather(*tasks)


async def test_while_others_are_answered_a_turn_is_waited_for_as_long_as_it_takes(calls, time):
    tasks = await calls.start(20)
    for _ in range(10):
        time.elapsed += 29
        await calls.end()
    await asyncio.gather(*tasks)


async def test_one_that_is_not_answered_in_time_is_given_up_and_its_turn_is_anothers():
    calls = Calls(ProviderTurns(1, longest=timedelta(milliseconds=10)))
    for underway in (1, 2):
        with pytest.raises(Unavailable, match="in time"):
            await calls.make()
        # It had its turn, and was not given up while it waited for one.
        assert len(calls.underway) == underway


async def test_who_has_waited_while_nobody_was_answered_does_not_try_and_who_comes_does(calls, time):
    tasks = await calls.start(10)
    for _ in range(4):
        time.elapsed += 10
        await calls.end(Unavailable("no answer"))
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(end) for end in ends[:8]] == ["no answer"] * 8
    assert all(isinstance(end, Unavailable) and "in time" in str(end) for end in ends[8:])

    tasks = await calls.start(2)
    assert len(calls.underway) == 2
    await calls.end()
    await asyncio.gather(*tasks)


async def test_one_failure_among_answers_is_its_own_alone(calls, time):
    tasks = await calls.start(12)
    for failure in (None, Unavailable("no answer")) * 3:
        time.elapsed += 20
        await calls.end(failure)
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [end is None for end in ends] == [True, True, False, False] * 3


async def test_who_leaves_takes_no_turn_along(calls):
    for _ in range(5):
        # Two of them are under way, two wait.
        tasks = await calls.start(4)
        for task in tasks:
            task.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError)
            for end in await asyncio.gather(*tasks, return_exceptions=True)
        )
        calls.underway.clear()
    tasks = await calls.start(2)
    assert len(calls.underway) == 2
    await calls.end()
    await asyncio.gather(*tasks)
