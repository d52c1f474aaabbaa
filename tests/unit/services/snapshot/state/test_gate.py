from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from gateway.domain.location import parse_location
from gateway.services.snapshot.state.gate import Gate, LoadGate
from tests.cases import each_case

MIB = 1024 * 1024
TABLES = [parse_location(f"/tables/{number}") for number in range(20)]


class Reading:
    """Something that takes room until it is told to end."""

    def __init__(self, room: AbstractAsyncContextManager[int | None]) -> None:
        self.is_in = False
        # What there is room for, decoded.
        self.decoded: int | None = 0
        self.may_end = asyncio.Event()
        self.task = asyncio.create_task(self._run(room))

    async def _run(self, room: AbstractAsyncContextManager[int | None]) -> None:
        async with room as self.decoded:
            self.is_in = True
            await self.may_end.wait()

    async def end(self) -> None:
        self.may_end.set()
        await self.task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def readings(gate: Gate, *sizes: int) -> list[Reading]:
    started = [Reading(gate.room(size * MIB)) for size in sizes]
    await settle()
    return started


async def test_as_much_as_fits_is_under_way_at_once_and_the_rest_in_its_turn():
    first, second, third = await readings(Gate(10 * MIB), 6, 4, 4)
    assert (first.is_in, second.is_in, third.is_in) == (True, True, False)

    await second.end()
    await settle()
    assert third.is_in
    await asyncio.gather(first.end(), third.end())


async def test_nobody_is_overtaken():
    first, large, small = await readings(Gate(10 * MIB), 6, 8, 2)
    assert (large.is_in, small.is_in) == (False, False)

    await first.end()
    await settle()
    assert (large.is_in, small.is_in) == (True, True)
    await asyncio.gather(large.end(), small.end())


async def test_what_is_larger_than_all_room_goes_alone():
    first, second = await readings(Gate(10 * MIB), 1000, 2)

    assert (first.is_in, second.is_in) == (True, False)
    await asyncio.gather(first.end(), second.end())


async def test_who_gives_up_waiting_lets_those_behind_go_ahead():
    first, waiting, behind = await readings(Gate(10 * MIB), 6, 8, 2)
    waiting.task.cancel()
    await settle()

    assert behind.is_in
    await asyncio.gather(first.end(), behind.end())


async def test_who_gives_up_with_room_in_hand_gives_it_back():
    gate = Gate(10 * MIB)
    first, waiting = await readings(gate, 10, 10)
    first.may_end.set()
    while not first.task.done():
        await asyncio.sleep(0)
    # It has its turn by now, and does not know yet.
    waiting.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting.task

    [last] = await readings(gate, 10)
    assert last.is_in
    await last.end()


async def test_a_failure_gives_its_room_back():
    gate = Gate(10 * MIB)
    with pytest.raises(ValueError, match="damaged"):
        async with gate.room(10 * MIB):
            raise ValueError("damaged")

    [last] = await readings(gate, 10)
    assert last.is_in
    await last.end()


async def loads(gate: LoadGate, *asked: tuple[int, int]) -> list[Reading]:
    """Start loads of tables, by their numbers, and of so many MiB."""
    started = [Reading(gate.room(TABLES[table], size * MIB)) for table, size in asked]
    await settle()
    return started


async def end(started: list[Reading]) -> None:
    await asyncio.gather(*(reading.end() for reading in started))


async def test_what_is_small_does_not_wait_behind_what_is_large():
    started = await loads(LoadGate(10 * MIB), (0, 10), (1, 10), (2, 0))

    assert [reading.is_in for reading in started] == [True, False, True]
    await end(started)


async def test_what_is_small_is_bounded_by_number():
    started = await loads(LoadGate(10 * MIB), *((table, 0) for table in range(18)))
    assert [reading.is_in for reading in started] == [True] * 16 + [False] * 2

    await started[0].end()
    await settle()
    assert [reading.is_in for reading in started[16:]] == [True, False]
    await end(started)


@pytest.mark.parametrize("size", [0, 1])
async def test_one_load_of_a_table_is_under_way_and_the_others_take_no_room(size):
    started = await loads(LoadGate(16 * MIB), *((0, size) for _ in range(50)), (1, size))
    assert [reading.is_in for reading in started] == [True] + [False] * 49 + [True]

    await started[0].end()
    await settle()
    assert [reading.is_in for reading in started[1:3]] == [True, False]
    await end(started)


async def test_room_is_for_as_much_as_most_logs_come_to_and_all_of_it_for_any():
    started = await loads(LoadGate(10 * MIB), (0, 0), (1, 2), (2, 10), (3, 11))
    assert [reading.decoded for reading in started[:2]] == [32 * MIB, 64 * MIB]

    await end(started)
    assert [reading.decoded for reading in started[2:]] == [None, None]


@each_case("size", [0, 1, 2, 5, 9])
def test_who_was_short_of_room_asks_for_more_than_before(size):
    gate = LoadGate(10 * MIB)
    too_much = max(size, 1) * MIB * 32 + 1

    assert gate.size_for(too_much) >= 2 * max(size, 1) * MIB
