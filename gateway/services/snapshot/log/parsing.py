"""Threads that parse logs, apart from those that answer requests."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from gateway.domain.location import Location
from gateway.services.snapshot.log.turns import Turns

T = TypeVar("T")


class Parsing:
    """So many threads, of which a table has one at a time: what is slow to parse holds up little else.

    Nobody closes it: its threads end with it, or with the process.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="log")
        self._turns = Turns()

    async def run(self, table: Location, function: Callable[[], T]) -> T:
        """Return what a function returns, in the table's turn.

        Who gives up waits for a thread that has begun: a thread cannot be stopped, and what it takes must not
        count as free before it ends.
        """
        async with self._turns.turn(table):
            work = partial(contextvars.copy_context().run, function)
            running = self._threads.submit(work)
            waiting = asyncio.wrap_future(running)
            try:
                return await asyncio.shield(waiting)
            except asyncio.CancelledError:
                if not running.cancel():
                    await _outlast(waiting)
                raise


async def _outlast(waiting: asyncio.Future[T]) -> None:
    while not waiting.done():
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError:
            # Whoever waits has been told already.
            continue
    if not waiting.cancelled():
        # Seen here, so that a failure nobody waited for is not reported as forgotten.
        waiting.exception()
