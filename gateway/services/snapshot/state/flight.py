"""One run of a piece of work for all that ask for it while it is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Shares a result or a failure with those who wait for it, and keeps neither."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what the work gives; it is stopped only when nobody waits for it any more."""
        flight = self._flights.get(key)
        if flight is None or flight.task.done():
            # What has ended is kept for nobody, even where those who waited do not know yet.
            flight = self._flights[key] = _Flight(asyncio.ensure_future(work()))
            flight.task.add_done_callback(lambda _: self._land(key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                # Whoever comes next must not wait for what is being stopped.
                self._land(key, flight)
                flight.task.cancel()

    def _land(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if flight.task.done() and not flight.task.cancelled():
            # Seen here, so that a failure nobody waited for is not reported as forgotten.
            flight.task.exception()


@dataclass(slots=True, eq=False)
class _Flight(Generic[T]):
    task: asyncio.Future[T]
    waiting: int = 0
