from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from gateway.adapters.queue_watch import INTERVAL, QueueWatch, watched_queue
from gateway.domain.job import JobKind
from gateway.errors import Unavailable


class FakeQueue:
    def __init__(self, *faults: Exception | None) -> None:
        self._faults = list(faults)
        self.looks: list[Collection[JobKind]] = []

    async def look(self, kinds: Collection[JobKind]) -> None:
        self.looks.append(kinds)
        fault = self._faults.pop(0) if self._faults else None
        if fault is not None:
            raise fault


class Sleeps:
    """Ends the watch after so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self._most:
            raise asyncio.CancelledError


async def watch(queue: FakeQueue, sleeps: Sleeps, *, is_needed: bool = True) -> None:
    with pytest.raises(asyncio.CancelledError):
        await QueueWatch(queue, lambda: is_needed, sleep=sleeps).run()


async def test_all_kinds_are_looked_at_again_and_again():
    queue, sleeps = FakeQueue(), Sleeps(3)
    await watch(queue, sleeps)
    assert queue.looks == [tuple(JobKind)] * 3
    assert sleeps.seconds == [INTERVAL.total_seconds()] * 3


async def test_where_nothing_asks_for_jobs_the_state_is_left_alone():
    queue = FakeQueue()
    await watch(queue, Sleeps(3), is_needed=False)
    assert queue.looks == []


async def test_a_state_that_is_away_is_looked_at_again_without_a_word(caplog):
    queue = FakeQueue(Unavailable("the store does not answer"))
    await watch(queue, Sleeps(2))
    assert len(queue.looks) == 2
    assert caplog.records == []


async def test_a_fault_of_our_own_is_told_and_the_watch_goes_on(caplog):
    queue = FakeQueue(RuntimeError("unforeseen"))
    await watch(queue, Sleeps(2))
    assert len(queue.looks) == 2
    assert "could not be looked at" in caplog.text


async def test_the_watch_ends_with_its_block():
    before = asyncio.all_tasks()
    async with watched_queue(FakeQueue(), lambda: True):
        assert len(asyncio.all_tasks()) == len(before) + 1
    assert asyncio.all_tasks() == before
