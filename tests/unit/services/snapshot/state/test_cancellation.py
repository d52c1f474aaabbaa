"""Whoever gives up, whenever it is: all room is there again afterwards, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from gateway.domain.location import Location, parse_location
from gateway.services.snapshot.log.turns import Turns
from gateway.services.snapshot.state.flight import SingleFlight
from gateway.services.snapshot.state.gate import Gate, LoadGate
from tests.crowd import Crowd, Member, settle
from tests.hypothesis_profiles import seeds

MIB = 1024 * 1024
ROOM = 10
SEEDS = seeds(400)
STEPS = 30
TABLES = [parse_location(f"/tables/{number}") for number in range(4)]


class Sized(Member):
    def __init__(self, gate: Gate, size: int) -> None:
        super().__init__(gate.room(size))
        self.size = size


class Loading(Member):
    def __init__(self, gate: LoadGate, table: Location, size: int) -> None:
        super().__init__(gate.room(table, size * MIB))
        self.table, self.size = table, size


class Keyed(Member):
    def __init__(self, turns: Turns, key: str) -> None:
        super().__init__(turns.turn(key))
        self.key = key


async def is_in(member: Member) -> bool:
    """Tell whether there is room for one that comes, and send it away."""
    await settle()
    found = member.is_in
    member.task.cancel()
    await asyncio.wait([member.task])
    return found


async def test_a_gate_has_all_its_room_again():
    for seed in SEEDS:
        gate = Gate(ROOM)
        crowd: list[Sized] = []

        def come(random: Random, gate: Gate = gate, crowd: list[Sized] = crowd) -> Member:
            crowd.append(Sized(gate, random.choice((1, 3, ROOM, 5 * ROOM))))
            return crowd[-1]

        def check(crowd: list[Sized] = crowd) -> None:
            assert sum(min(member.size, ROOM) for member in crowd if member.is_in) <= ROOM

        milling = Crowd(seed, come)
        await milling.mill(STEPS, check)
        await milling.disperse()
        assert await is_in(Sized(gate, ROOM)), f"seed {seed}"


async def test_who_is_left_goes_in_as_soon_as_there_is_room():
    for seed in SEEDS:
        gate = Gate(ROOM)
        crowd: list[Sized] = []

        def come(random: Random, gate: Gate = gate, crowd: list[Sized] = crowd) -> Member:
            crowd.append(Sized(gate, random.choice((1, 3, ROOM))))
            return crowd[-1]

        milling = Crowd(seed, come)
        await milling.mill(STEPS, lambda: None)
        await settle()

        waiting = [member for member in crowd if not member.task.done() and not member.is_in]
        taken = sum(member.size for member in crowd if member.is_in)
        assert not waiting or taken + waiting[0].size > ROOM, f"seed {seed}"
        await milling.disperse()


async def test_a_gate_of_loads_has_all_its_room_again():
    for seed in SEEDS:
        gate = LoadGate(ROOM * MIB)
        crowd: list[Loading] = []

        def come(random: Random, gate: LoadGate = gate, crowd: list[Loading] = crowd) -> Member:
            crowd.append(Loading(gate, random.choice(TABLES), random.choice((0, 1, 6, 2 * ROOM))))
            return crowd[-1]

        def check(crowd: list[Loading] = crowd) -> None:
            inside = [member for member in crowd if member.is_in]
            assert sum(min(member.size, ROOM) for member in inside) <= ROOM
            assert max(Counter(member.table for member in inside).values(), default=0) <= 1

        milling = Crowd(seed, come)
        await milling.mill(STEPS, check)
        await milling.disperse()
        for table in TABLES:
            assert await is_in(Loading(gate, table, ROOM)), f"seed {seed}"
            assert await is_in(Loading(gate, table, 0)), f"seed {seed}"


async def test_turns_come_to_all_that_wait_for_them():
    for seed in SEEDS:
        turns = Turns()
        crowd: list[Keyed] = []

        def come(random: Random, turns: Turns = turns, crowd: list[Keyed] = crowd) -> Member:
            crowd.append(Keyed(turns, random.choice("ab")))
            return crowd[-1]

        def check(crowd: list[Keyed] = crowd) -> None:
            inside = Counter(member.key for member in crowd if member.is_in)
            assert max(inside.values(), default=0) <= 1

        milling = Crowd(seed, come)
        await milling.mill(STEPS, check)
        await milling.disperse()
        for key in "ab":
            assert await is_in(Keyed(turns, key)), f"seed {seed}"


class Runs:
    """Work that ends when it is told to, and what has become of it."""

    def __init__(self) -> None:
        self.begun = self.over = self.ended = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        run = self.begun
        try:
            await self.may_end.wait()
            self.ended = run
            return run
        finally:
            self.over += 1


@asynccontextmanager
async def awaited(flights: SingleFlight[int], runs: Runs) -> AsyncIterator[None]:
    ended = runs.ended
    assert await flights.run("key", runs) > ended, "what had ended before was told"
    yield


async def test_work_that_is_shared_ends_or_is_stopped_and_none_is_told_twice():
    for seed in SEEDS:
        flights, runs = SingleFlight[int](), Runs()

        def come(random: Random, flights: SingleFlight[int] = flights, runs: Runs = runs) -> Member:
            # As chance will have it, what is under way ends in this very turn.
            (runs.may_end.set if random.random() < 0.3 else runs.may_end.clear)()
            return Member(awaited(flights, runs))

        milling = Crowd(seed, come)
        await milling.mill(STEPS, lambda: None)
        runs.may_end.set()
        await milling.disperse()

        assert runs.over == runs.begun, f"seed {seed}"
        assert await flights.run("key", runs) == runs.begun
