from __future__ import annotations

import asyncio

import pytest

from gateway.adapters.cache.flight import Flights
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
