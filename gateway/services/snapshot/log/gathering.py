"""Reading many things at once, but not too many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def gather(reads: Iterable[Callable[[], Awaitable[T]]], at_once: int) -> list[T]:
    """Return what is read, in order, so many at a time; the first failure stops the others.

    None of them is under way any more when this ends.
    """
    waiting = enumerate(reads)
    done: dict[int, T] = {}

    async def work() -> None:
        for place, read in waiting:
            done[place] = await read()

    # Not a task for each: there may be many.
    tasks = [asyncio.create_task(work()) for _ in range(at_once)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        # What was begun may not stop at once; who reads on thinks that its memory is free.
        await asyncio.gather(*tasks, return_exceptions=True)
    return [done[place] for place in range(len(done))]
