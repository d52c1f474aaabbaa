"""Work that is done one piece at a time for each table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


class Turns:
    """One at a time for each key, first come, first served; keys do not wait for each other."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[None]:
        queue = self._queues.setdefault(key, _Queue())
        queue.users += 1
        try:
            async with queue.lock:
                yield
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[key]


@dataclass(slots=True, eq=False)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
