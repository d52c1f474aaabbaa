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
    slots = asyncio.Semaphore(at_once)

    async def run(read: Callable[[], Awaitable[T]]) -> T:
        async with slots:
            return await read()

    tasks = [asyncio.create_task(run(read)) for read in reads]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        # What was begun may not stop at once; who reads on thinks that its memory is free.
        await asyncio.gather(*tasks, return_exceptions=True)
