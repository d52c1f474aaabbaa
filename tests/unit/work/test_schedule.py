from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.adapters.job_queue import StateJobQueue
from gateway.domain.job import JobKey, JobKind, JobState
from gateway.work.craft import Scheduled, Wanted
from gateway.work.schedule import Schedule
from tests.fakes.craft import FakeCraft
from tests.fakes.state_store import FakeStateStore

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
VIEW = JobKey(kind=JobKind.VIEW, subject="orders")
HOURLY = Scheduled(wanted=Wanted(key=VIEW, parameters={"name": "orders"}), every=timedelta(hours=1))


class World:
    def __init__(self) -> None:
        self.now = NOON
        self.state = FakeStateStore()
        self.craft = FakeCraft()
        self.craft.schedules = [HOURLY]
        self.queue = StateJobQueue(
            self.state, worker="a", lease=timedelta(seconds=30), clock=lambda: self.now
        )
        self.schedules = [Schedule(self.queue, lambda: self.now) for _ in range(2)]

    async def ask(self) -> None:
        for schedule in self.schedules:
            await schedule.ask_for_due({JobKind.VIEW: self.craft})

    async def run(self) -> bool:
        claim = await self.queue.claim([JobKind.VIEW])
        return claim is not None and await self.queue.complete(claim)


@pytest.fixture
def world():
    return World()


async def test_what_was_never_done_is_due_at_once_and_for_all_workers_once(world):
    await world.ask()

    job = await world.queue.find(VIEW)
    assert (job.state, job.sequence, job.parameters) == (JobState.QUEUED, 1, {"name": "orders"})


async def test_job_is_due_again_when_its_last_run_began_so_long_ago(world):
    runs = []
    for _ in range(40):
        await world.ask()
        if await world.run():
            runs.append(world.now)
        world.now += timedelta(minutes=5)

    assert [(at - NOON) for at in runs] == [timedelta(hours=number) for number in range(4)]


async def test_state_is_asked_about_a_job_once_a_period_only(world):
    await world.ask()
    await world.run()
    calls = len(world.state.calls)
    for _ in range(100):
        await world.ask()
    assert len(world.state.calls) == calls


async def test_state_that_is_away_is_asked_again(world):
    world.state.fail_next("get", "get")
    await world.ask()
    assert await world.queue.find(VIEW) is None

    await world.ask()
    assert await world.queue.find(VIEW)


async def test_what_is_not_wanted_any_more_is_not_asked_for(world):
    await world.ask()
    await world.run()
    world.craft.schedules = []
    world.now += timedelta(hours=5)
    await world.ask()

    assert (await world.queue.find(VIEW)).state is JobState.DONE
