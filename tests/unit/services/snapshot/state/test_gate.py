from __future__ import annotations

import asyncio

import pytest

from gateway.services.snapshot.state.gate import ByteGate

MIB = 1024 * 1024


class Reading:
    """Something that takes room until it is told to end."""

    def __init__(self, gate: ByteGate, size: int) -> None:
        self.is_in = False
        self.may_end = asyncio.Event()
        self.task = asyncio.create_task(self._run(gate, size))

    async def _run(self, gate: ByteGate, size: int) -> None:
        async with gate.room(size):
            self.is_in = True
            await self.may_end.wait()

    async def end(self) -> None:
        self.may_end.set()
        await self.task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def readings(gate: ByteGate, *sizes: int) -> list[Reading]:
    started = [Reading(gate, size * MIB) for size in sizes]
    await settle()
    return started


async def test_as_much_as_fits_is_under_way_at_once_and_the_rest_in_its_turn():
    first, second, third = await readings(ByteGate(10 * MIB), 6, 4, 4)
    assert (first.is_in, second.is_in, third.is_in) == (True, True, False)

    await second.end()
    await settle()
    assert third.is_in
    await asyncio.gather(first.end(), third.end())


async def test_nobody_is_overtaken():
    first, large, small = await readings(ByteGate(10 * MIB), 6, 8, 2)
    assert (large.is_in, small.is_in) == (False, False)

    await first.end()
    await settle()
    assert (large.is_in, small.is_in) == (True, True)
    await asyncio.gather(large.end(), small.end())


async def test_what_is_small_never_waits():
    first, waiting, small = await readings(ByteGate(10 * MIB), 10, 10, 0)

    assert (waiting.is_in, small.is_in) == (False, True)
    await asyncio.gather(first.end(), waiting.end(), small.end())


async def test_what_is_larger_than_all_room_goes_alone():
    first, second = await readings(ByteGate(10 * MIB), 1000, 2)

    assert (first.is_in, second.is_in) == (True, False)
    await asyncio.gather(first.end(), second.end())


async def test_who_gives_up_waiting_lets_those_behind_go_ahead():
    first, waiting, behind = await readings(ByteGate(10 * MIB), 6, 8, 2)
    waiting.task.cancel()
    await settle()

    assert behind.is_in
    await asyncio.gather(first.end(), behind.end())


async def test_who_gives_up_with_room_in_hand_gives_it_back():
    gate = ByteGate(10 * MIB)
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
    gate = ByteGate(10 * MIB)
    with pytest.raises(ValueError, match="damaged"):
        async with gate.room(10 * MIB):
            raise ValueError("damaged")

    [last] = await readings(gate, 10)
    assert last.is_in
    await last.end()
