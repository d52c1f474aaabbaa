"""One run of a piece of work for all that ask for it while it is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """Work goes on when those who wait for it leave: what it makes is of use to the next who ask."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def find(self, key: Hashable) -> asyncio.Task[T] | None:
        return self._tasks.get(key)

    def start(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """Begin the work of a key that is not under way."""
        task = self._tasks[key] = asyncio.create_task(work())
        task.add_done_callback(lambda done: self._land(key, done))
        return task

    async def close(self) -> None:
        """Stop all work."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _land(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            # Seen here, so that a failure nobody waited for is not reported as forgotten.
            task.exception()
