from __future__ import annotations

import asyncio

import pytest

from gateway.errors import Unavailable
from gateway.services.snapshot.state.flight import SingleFlight


class Work:
    """Counts its runs and goes on when told."""

    def __init__(self) -> None:
        self.runs = 0
        self.stopped = 0
        self.may_go_on = asyncio.Event()
        self.failure: Exception | None = None

    async def __call__(self) -> int:
        self.runs += 1
        run = self.runs
        try:
            await self.may_go_on.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        if self.failure:
            raise self.failure
        return run


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_all_that_ask_while_it_runs_share_one_run():
    flights, work = SingleFlight[int](), Work()
    waiting = [asyncio.create_task(flights.run("key", work)) for _ in range(10)]
    await settle()
    work.may_go_on.set()

    assert await asyncio.gather(*waiting) == [1] * 10


async def test_who_asks_afterwards_gets_a_run_of_his_own():
    flights, work = SingleFlight[int](), Work()
    work.may_go_on.set()

    assert [await flights.run("key", work), await flights.run("key", work)] == [1, 2]


async def test_other_keys_run_by_themselves():
    flights, work = SingleFlight[int](), Work()
    work.may_go_on.set()

    assert sorted(await asyncio.gather(flights.run("a", work), flights.run("b", work))) == [1, 2]


async def test_a_failure_reaches_all_that_wait_and_is_not_kept():
    flights, work = SingleFlight[int](), Work()
    work.failure = Unavailable("the store does not answer")
    waiting = [asyncio.create_task(flights.run("key", work)) for _ in range(2)]
    await settle()
    work.may_go_on.set()

    for task in waiting:
        with pytest.raises(Unavailable):
            await task
    work.failure = None
    assert await flights.run("key", work) == 2


async def test_one_that_gives_up_does_not_stop_the_others():
    flights, work = SingleFlight[int](), Work()
    first, second = (asyncio.create_task(flights.run("key", work)) for _ in range(2))
    await settle()
    first.cancel()
    await settle()
    work.may_go_on.set()

    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first
    assert work.stopped == 0


async def test_the_work_stops_when_nobody_waits_for_it():
    flights, work = SingleFlight[int](), Work()
    waiting = [asyncio.create_task(flights.run("key", work)) for _ in range(2)]
    await settle()
    for task in waiting:
        task.cancel()
    await settle()

    assert work.stopped == 1


async def test_who_comes_while_the_work_is_being_stopped_gets_a_run_of_his_own():
    flights, work = SingleFlight[int](), Work()
    first = asyncio.create_task(flights.run("key", work))
    await settle()
    first.cancel()
    # One step: the waiter is gone, the work does not know yet.
    await asyncio.sleep(0)
    second = asyncio.create_task(flights.run("key", work))
    await settle()
    work.may_go_on.set()

    assert await second == 2
