from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.adapters.loop_lag import LoopLagMonitor, measured_loop


class Recorder:
    def __init__(self) -> None:
        self.lags: list[timedelta] = []

    def observe_lag(self, lag: timedelta) -> None:
        self.lags.append(lag)


class LateLoop:
    """Oversleeps by the given seconds, then stops the monitor."""

    def __init__(self, *late: float) -> None:
        self._late = list(late)
        self.now = 100.0

    def elapsed(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if not self._late:
            raise asyncio.CancelledError
        self.now += seconds + self._late.pop(0)


async def test_the_overshoot_of_each_sleep_is_reported():
    metrics, loop = Recorder(), LateLoop(0.0, 0.75, 0.125)
    monitor = LoopLagMonitor(metrics, interval=timedelta(seconds=0.5), sleep=loop.sleep, elapsed=loop.elapsed)
    with pytest.raises(asyncio.CancelledError):
        await monitor.run()
    assert metrics.lags == [timedelta(0), timedelta(seconds=0.75), timedelta(seconds=0.125)]


async def test_waking_early_is_no_lag():
    metrics, loop = Recorder(), LateLoop(-0.01)
    monitor = LoopLagMonitor(metrics, sleep=loop.sleep, elapsed=loop.elapsed)
    with pytest.raises(asyncio.CancelledError):
        await monitor.run()
    assert metrics.lags == [timedelta(0)]


async def test_the_monitor_ends_with_its_block():
    before = asyncio.all_tasks()
    async with measured_loop(Recorder()):
        assert len(asyncio.all_tasks()) == len(before) + 1
    assert asyncio.all_tasks() == before
