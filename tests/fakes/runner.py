from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from gateway.work.runner import Order, Progress


class FakeRunner:
    """Gives each run its results in turn: a result, an error to raise, or an event to wait for first."""

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.orders: list[Order] = []
        self.cancelled = 0
        self.is_closed = False

    async def run(self, order: Order, tell: Callable[[Progress], None]) -> Mapping[str, Any]:
        self.orders.append(order)
        tell(Progress(message="half", done=1, total=2))
        result = self.results.pop(0) if self.results else {}
        try:
            while isinstance(result, asyncio.Event):
                await result.wait()
                result = self.results.pop(0) if self.results else {}
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(result, Exception):
            raise result
        return result

    async def close(self) -> None:
        self.is_closed = True
