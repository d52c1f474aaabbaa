"""Tasks that come, end and give up in an order of chance, several of them within one turn of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from random import Random

# As many turns as anything takes here that is not waiting for another.
_TURNS = 12


class Member:
    """Goes in as soon as it may, and stays until it is told to leave."""

    def __init__(self, door: AbstractAsyncContextManager[object]) -> None:
        self.is_in = False
        self.may_leave = asyncio.Event()
        self.task = asyncio.create_task(self._visit(door))

    async def _visit(self, door: AbstractAsyncContextManager[object]) -> None:
        async with door:
            self.is_in = True
            try:
                await self.may_leave.wait()
            finally:
                self.is_in = False


class Crowd:
    """All that is done by one order of chance; the same one for the same seed."""

    def __init__(self, seed: int, make: Callable[[Random], Member]) -> None:
        self.random = Random(seed)
        self.members: list[Member] = []
        self._make = make

    async def mill(self, steps: int, check: Callable[[], None]) -> None:
        """Have members come, leave and give up, any number of them in one turn."""
        for _ in range(steps):
            for _ in range(self.random.randrange(4)):
                self._act()
            for _ in range(self.random.randrange(3)):
                await asyncio.sleep(0)
            check()

    async def disperse(self) -> None:
        """Let all leave; fail where one waits for ever, or has met anything but its own cancellation."""
        for member in self.random.sample(self.members, len(self.members)):
            member.may_leave.set()
        for _ in range(_TURNS * len(self.members)):
            await asyncio.sleep(0)
        forgotten = [member for member in self.members if not member.task.done()]
        assert not forgotten, f"{len(forgotten)} of {len(self.members)} wait for ever"
        failures = [member.task.exception() for member in self.members if not member.task.cancelled()]
        assert not any(failures), failures

    def _act(self) -> None:
        left = [member for member in self.members if not member.task.done()]
        match self.random.choice(("come", "come", "leave", "give up")) if left else "come":
            case "come":
                self.members.append(self._make(self.random))
            case "leave":
                self.random.choice(left).may_leave.set()
            case "give up":
                self.random.choice(left).task.cancel()


async def settle() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
