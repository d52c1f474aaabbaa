from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from gateway.adapters.cache.flight import Flights
from tests.crowd import Crowd, Member
from tests.hypothesis_profiles import seeds
from tests.unit.adapters.cache.doubles import settle


async def test_work_is_found_while_it_is_under_way_and_not_afterwards():
    flights: Flights[int] = Flights()
    gate = asyncio.Event()

    async def work() -> int:
        await gate.wait()
        return 1

    task = flights.start("a", work)
    assert flights.find("a") is task
    assert flights.find("b") is None
    assert len(flights) == 1
    gate.set()
    assert await task == 1
    await settle()
    assert flights.find("a") is None


async def test_failure_that_nobody_waited_for_is_not_reported_as_forgotten(recwarn):
    flights: Flights[int] = Flights()

    async def fail() -> int:
        raise OSError("no route")

    flights.start("a", fail)
    await settle()
    assert not len(flights)


async def test_work_that_is_going_on_ends_with_the_process():
    flights: Flights[int] = Flights()

    async def work() -> int:
        await asyncio.Event().wait()
        return 1

    task = flights.start("a", work)
    await flights.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not len(flights)


class Runs:
    """Work that ends when it is told to."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        await self.may_end.wait()
        self.ended += 1
        return self.ended


@asynccontextmanager
async def awaited(flights: Flights[int], runs: Runs) -> AsyncIterator[None]:
    await asyncio.shield(flights.find("key") or flights.start("key", runs))
    yield


async def test_work_goes_on_whoever_gives_up_and_whenever():
    for seed in seeds(300):
        flights: Flights[int] = Flights()
        runs = Runs()

        def come(random: Random, flights: Flights[int] = flights, runs: Runs = runs) -> Member:
            # As chance will have it, what is under way ends in this very turn.
            (runs.may_end.set if random.random() < 0.3 else runs.may_end.clear)()
            return Member(awaited(flights, runs))

        def check(flights: Flights[int] = flights, runs: Runs = runs) -> None:
            assert runs.begun - runs.ended <= len(flights) <= 1

        crowd = Crowd(seed, come)
        await crowd.mill(30, check)
        runs.may_end.set()
        await crowd.disperse()
        assert (runs.ended, len(flights)) == (runs.begun, 0)
