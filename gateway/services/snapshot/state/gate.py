"""Lets so much of logs be loaded at a time, first come, first served."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from gateway.domain.location import Location
from gateway.services.snapshot.log.turns import Turns

# What is smaller never waits behind what is not.
_SMALL: Final = 1024 * 1024
# It is bounded by number, as it may take far more time and memory than its size tells.
_MAX_SMALL: Final = 16
# What a byte of room may come to, decoded; one of a checkpoint mostly comes to seven to fifteen.
_DECODED_PER_BYTE: Final = 32


class LoadGate:
    """Lets one load of a table be under way, and of all tables so many small ones and so many bytes."""

    def __init__(self, capacity: int) -> None:
        self._tables = Turns()
        self._small = Gate(_MAX_SMALL)
        self._large = Gate(capacity)
        self._capacity = capacity

    @asynccontextmanager
    async def room(self, table: Location, size: int) -> AsyncIterator[int | None]:
        """Wait for the table's turn, then for room; give both back afterwards.

        It is room for so many bytes, decoded; None where it is all there is, and for any number of them.
        """
        # In this order: who waits for the same table takes no room from others.
        lane = self._small.room(1) if size < _SMALL else self._large.room(size)
        async with self._tables.turn(table), lane:
            yield None if size >= self._capacity else max(size, _SMALL) * _DECODED_PER_BYTE

    def size_for(self, decoded: int) -> int:
        """Return how much is to be asked for where so many bytes were too many: more than that takes."""
        return 2 * decoded // _DECODED_PER_BYTE


class Gate:
    """Bounds what is under way; something larger than all the room goes alone."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._free = capacity
        # What each waits for, who came first being first.
        self._waiting: OrderedDict[asyncio.Future[None], int] = OrderedDict()

    @asynccontextmanager
    async def room(self, size: int) -> AsyncIterator[None]:
        """Wait for room, and give it back afterwards."""
        taken = min(size, self._capacity)
        await self._enter(taken)
        try:
            yield
        finally:
            self._leave(taken)

    async def _enter(self, size: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = size
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(size)
            else:
                # Gone already where room was given out between the cancellation and this.
                self._waiting.pop(turn, None)
                self._admit()
            raise

    def _leave(self, size: int) -> None:
        self._free += size
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            turn, size = next(iter(self._waiting.items()))
            # Who has given up takes no room, though he may not know yet.
            if not turn.cancelled():
                if size > self._free:
                    return
                self._free -= size
                turn.set_result(None)
            del self._waiting[turn]
