"""Measures how late the event loop wakes a task: what every request waits besides its own work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final, Protocol

INTERVAL: Final = timedelta(milliseconds=250)


class LagMetrics(Protocol):
    def observe_lag(self, lag: timedelta) -> None: ...


class LoopLagMonitor:
    """Sleeps again and again, and reports by how much each sleep was too long."""

    def __init__(
        self,
        metrics: LagMetrics,
        *,
        interval: timedelta = INTERVAL,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        elapsed: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._metrics = metrics
        self._interval = interval.total_seconds()
        self._sleep = sleep
        self._elapsed = elapsed

    async def run(self) -> None:
        while True:
            begin = self._elapsed()
            await self._sleep(self._interval)
            late = self._elapsed() - begin - self._interval
            self._metrics.observe_lag(timedelta(seconds=max(late, 0.0)))


@asynccontextmanager
async def measured_loop(metrics: LagMetrics) -> AsyncIterator[None]:
    """Measure the lag of the running loop until the block is left."""
    task = asyncio.create_task(LoopLagMonitor(metrics).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
