"""Lets so many bytes of logs be read at a time, first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

# What is too small to matter never waits behind what is not.
_SMALL: Final = 1024 * 1024


class ByteGate:
    """Bounds the memory of what is under way; something larger than all of it goes alone."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._free = capacity
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def room(self, size: int) -> AsyncIterator[None]:
        """Wait for room, and give it back afterwards."""
        if size < _SMALL:
            yield
            return
        taken = min(size, self._capacity)
        await self._enter(taken)
        try:
            yield
        finally:
            self._leave(taken)

    async def _enter(self, size: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(size)
            else:
                self._waiting.remove((size, turn))
                self._admit()
            raise

    def _leave(self, size: int) -> None:
        self._free += size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, turn = self._waiting.popleft()
            self._free -= size
            turn.set_result(None)
