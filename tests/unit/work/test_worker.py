from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.adapters.job_queue import StateJobQueue
from gateway.domain.job import Claim, JobKey, JobKind, JobState
from gateway.domain.location import parse_location
from gateway.errors import InvalidArgument, Unavailable
from gateway.ports import Storage, utcnow
from gateway.work.craft import Plan, Scheduled, Wanted
from gateway.work.performance import Outcome, Workshop
from gateway.work.places import SparkPlaces
from gateway.work.runner import RunFailed
from gateway.work.worker import Worker
from tests.fakes.craft import FakeCraft
from tests.fakes.runner import FakeRunner
from tests.fakes.state_store import FakeStateStore
from tests.fakes.storages import FakeStorages
from tests.waiting import DEADLINES, eventually_async

LEASE = timedelta(seconds=30)
VIEW = JobKey(kind=JobKind.VIEW, subject="orders")
LAKE = parse_location("s3://lake")


class FakeSpark:
    async def settings(self):
        return {"fs.s3a.bucket.lake.secret.key": "hunter2hunter2"}

    def url(self, location):
        return f"spark:{location.path}"


class Counts:
    def __init__(self) -> None:
        self.runs: list[tuple[JobKind, str]] = []
        self.losses = 0

    def observe_run(self, kind, outcome, elapsed) -> None:
        self.runs.append((kind, outcome))

    def count_lease_loss(self, kind) -> None:
        self.losses += 1


class Seen:
    """How many waited and ran when somebody looked last."""

    last = (0, 0)

    def set_queue(self, kind: JobKind, queued: int, running: int, oldest: timedelta) -> None:
        self.last = queued, running


class World:
    def __init__(self, *results: object, **pacing: timedelta) -> None:
        self.now = utcnow()
        self.state = FakeStateStore()
        self.craft = FakeCraft()
        self.runner = FakeRunner(*results)
        self.counts = Counts()
        self.queue = self.queue_of("a")
        shop = Workshop(
            queue=self.queue,
            crafts={JobKind.VIEW: self.craft},
            runner=self.runner,
            places=SparkPlaces(FakeStorages(Storage(name="lake", prefix=LAKE, spark=FakeSpark()))),
            spark={"master": "local[1]"},
            lease_time=LEASE,
            job_timeout=timedelta(hours=1),
            clock=utcnow,
        )
        short = timedelta(milliseconds=1)
        self.worker = Worker(shop, self.counts, poll=short, pause=short, **pacing)

    def queue_of(self, name: str) -> StateJobQueue:
        return StateJobQueue(self.state, worker=name, lease=LEASE, clock=lambda: self.now)

    def sleep_by_clock(self) -> None:
        """Let each sleep of a lease advance the clock, and take no real time."""
        self.queue = self.queue_of("a")
        self.worker.shop = replace(
            self.worker.shop, queue=self.queue, clock=lambda: self.now, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        await asyncio.sleep(0)

    async def claimed(self, worker: str = "a") -> Claim:
        if worker == "a":
            await self.queue.request(VIEW, {"name": "orders"}, utcnow())
        queue = self.queue if worker == "a" else self.queue_of(worker)
        claim = await queue.claim_job(VIEW)
        assert claim is not None
        return claim

    async def perform(self, end: asyncio.Event | None = None):
        return await self.worker.perform(await self.claimed(), end or asyncio.Event())

    async def job(self):
        return await self.queue.find(VIEW)


async def test_job_is_planned_run_published_and_done():
    world = World({"rows": 3})
    world.craft.next_plan = Plan(body={"do": "it"}, locations=(parse_location("s3://lake/t"),))

    performed = await world.perform()

    assert (performed.outcome, performed.result) == (Outcome.DONE, {"rows": 3})
    (order,) = world.runner.orders
    assert (order.kind, order.plan, order.spark) == (JobKind.VIEW, {"do": "it"}, {"master": "local[1]"})
    assert order.access == {"fs.s3a.bucket.lake.secret.key": "hunter2hunter2"}
    assert "hunter2" not in repr(order)
    ((job, result),) = world.craft.published
    assert (job.key, job.parameters, result) == (VIEW, {"name": "orders"}, {"rows": 3})
    assert (await world.job()).state is JobState.DONE
    assert world.counts.runs == [(JobKind.VIEW, "done")]


async def test_job_without_anything_to_do_is_done():
    world = World()
    world.craft.next_plan = None

    assert (await world.perform()).result is None
    assert world.runner.orders == []
    assert world.craft.published == []
    assert (await world.job()).state is JobState.DONE


@pytest.mark.parametrize(
    ("error", "state", "words"),
    [
        (RunFailed("no disk", retry=True), JobState.QUEUED, "no disk"),
        (RunFailed("no such column", retry=False), JobState.FAILED, "no such column"),
        (RuntimeError("secret in a trace"), JobState.QUEUED, "internal error"),
    ],
)
async def test_run_that_fails_is_noted_and_published_never(error, state, words):
    world = World(error)

    performed = await world.perform()

    job = await world.job()
    assert (job.state, job.error, performed.error) == (state, words, words)
    assert performed.outcome is (Outcome.FAILED if state is JobState.FAILED else Outcome.RETRIED)
    assert world.craft.published == []


@pytest.mark.parametrize(
    ("error", "state"), [(Unavailable("away"), JobState.QUEUED), (InvalidArgument("no"), JobState.FAILED)]
)
async def test_plan_or_publication_that_fails_is_tried_again_where_that_may_help(error, state):
    world = World()
    world.craft.next_plan = error
    await world.perform()
    assert ((await world.job()).state, world.runner.orders) == (state, [])

    world = World()
    world.craft.publish_error = error
    await world.perform()
    assert (await world.job()).state is state


async def test_run_whose_lease_was_taken_publishes_nothing():
    world = World(gate := asyncio.Event(), {"rows": 3})
    claim = await world.claimed()
    performing = asyncio.create_task(world.worker.perform(claim, asyncio.Event()))
    await eventually_async(lambda: world.runner.orders)
    await world.queue.release(claim)
    other = await world.claimed("b")
    gate.set()

    assert (await performing).outcome is Outcome.LOST
    assert world.craft.published == []
    assert world.counts.losses == 1
    assert (await world.job()).worker == other.job.worker


async def test_run_is_ended_as_soon_as_its_lease_is_seen_to_be_lost():
    world = World(asyncio.Event())
    world.sleep_by_clock()
    claim = await world.claimed()
    performing = asyncio.create_task(world.worker.perform(claim, asyncio.Event()))
    await eventually_async(lambda: world.runner.orders)
    await world.queue.release(claim)

    assert (await asyncio.wait_for(performing, 60)).outcome is Outcome.LOST
    assert world.runner.cancelled == 1


async def test_lease_is_kept_for_as_long_as_a_run_takes():
    world = World(gate := asyncio.Event(), {"rows": 3})
    world.sleep_by_clock()
    claim = await world.claimed()
    end = world.now + 10 * LEASE
    performing = asyncio.create_task(world.worker.perform(claim, asyncio.Event()))
    while world.now < end:
        assert await world.queue_of("b").claim((JobKind.VIEW,)) is None
    gate.set()

    assert (await performing).outcome is Outcome.DONE


async def test_run_is_ended_when_nobody_can_say_that_its_lease_holds():
    world = World(asyncio.Event())
    world.sleep_by_clock()
    claim = await world.claimed()

    async def away(method: str, key: str) -> None:
        raise Unavailable("away")

    world.state.before = away
    performed = await asyncio.wait_for(world.worker.perform(claim, asyncio.Event()), 60)

    assert (performed.outcome, world.runner.cancelled) == (Outcome.LOST, 1)


async def test_run_is_ended_when_its_lease_is_over_whatever_keeps_it_from_being_renewed(caplog):
    world = World(asyncio.Event())
    world.sleep_by_clock()
    claim = await world.claimed()

    async def broken(method: str, key: str) -> None:
        raise RuntimeError("a fault of our own")

    world.state.before = broken
    performed = await asyncio.wait_for(world.worker.perform(claim, asyncio.Event()), 60)

    assert (performed.outcome, world.runner.cancelled) == (Outcome.LOST, 1)
    assert "the lease of a job could not be renewed" in caplog.text


async def test_what_was_made_is_published_by_the_configuration_of_that_moment():
    world = World(gate := asyncio.Event(), {"rows": 3})
    performing = asyncio.create_task(world.perform())
    await eventually_async(lambda: world.runner.orders)
    changed = FakeCraft()
    world.worker.shop = replace(world.worker.shop, crafts={JobKind.VIEW: changed})
    gate.set()

    assert (await performing).outcome is Outcome.DONE
    assert (len(world.craft.published), len(changed.published)) == (0, 1)


async def test_run_that_takes_too_long_is_ended_and_has_failed():
    for seconds in DEADLINES:
        world = World(asyncio.Event())
        world.worker.shop = replace(world.worker.shop, job_timeout=timedelta(seconds=seconds))
        performed = await world.perform()
        assert performed.outcome is Outcome.FAILED
        assert "pipeline.jobTimeout" in (await world.job()).error
        if world.runner.orders:
            break
    assert world.runner.cancelled == 1


async def test_stop_gives_the_job_back_for_another_to_take_at_once():
    world = World(asyncio.Event())
    end = asyncio.Event()
    performing = asyncio.create_task(world.perform(end))
    await eventually_async(lambda: world.runner.orders)
    end.set()

    assert ((await performing).outcome, world.runner.cancelled) == (Outcome.RELEASED, 1)
    assert (await world.claimed("b")).job.attempts == 0


async def test_worker_works_until_it_is_asked_to_stop_and_closes_its_runner():
    world = World()
    stop, end = asyncio.Event(), asyncio.Event()
    working = asyncio.create_task(world.worker.work(stop, end))
    await world.queue.request(VIEW, {}, utcnow())
    await eventually_async(lambda: world.craft.published)
    stop.set()
    await working

    assert world.runner.is_closed


async def test_worker_lets_the_job_under_way_finish_when_it_is_asked_to_stop():
    world = World(gate := asyncio.Event(), {})
    stop, end = asyncio.Event(), asyncio.Event()
    await world.queue.request(VIEW, {}, utcnow())
    working = asyncio.create_task(world.worker.work(stop, end))
    await eventually_async(lambda: world.runner.orders)
    stop.set()
    gate.set()
    await working

    assert (await world.job()).state is JobState.DONE


async def test_worker_goes_on_after_the_state_was_away():
    world = World()
    world.state.fail_next("list")
    stop, end = asyncio.Event(), asyncio.Event()
    await world.queue.request(VIEW, {}, utcnow())
    working = asyncio.create_task(world.worker.work(stop, end))
    await eventually_async(lambda: world.craft.published)
    stop.set()
    await working
    assert world.worker.trouble == ""


async def test_a_busy_worker_sees_what_waits_meanwhile():
    world = World(gate := asyncio.Event(), {}, look=timedelta(milliseconds=1))
    seen = Seen()
    world.worker.shop = replace(
        world.worker.shop,
        queue=StateJobQueue(world.state, worker="a", lease=LEASE, clock=utcnow, metrics=seen),
    )
    stop, end = asyncio.Event(), asyncio.Event()
    await world.queue.request(VIEW, {}, utcnow())
    working = asyncio.create_task(world.worker.work(stop, end))
    await eventually_async(lambda: world.runner.orders)
    await world.queue.request(JobKey(kind=JobKind.VIEW, subject="later"), {}, utcnow())
    await eventually_async(lambda: seen.last == (1, 1))
    stop.set()
    gate.set()
    await working


async def test_runner_that_has_nothing_to_do_for_long_is_closed():
    world = World(idle=timedelta(milliseconds=20))
    stop, end = asyncio.Event(), asyncio.Event()
    working = asyncio.create_task(world.worker.work(stop, end))
    await eventually_async(lambda: world.runner.is_closed)
    assert not working.done()
    stop.set()
    await working


async def test_drain_does_what_is_due_and_ends():
    world = World({}, RunFailed("no", retry=False))
    daily = Scheduled(wanted=Wanted(key=VIEW), every=timedelta(days=1))
    world.craft.schedules = [daily]
    other = JobKey(kind=JobKind.VIEW, subject="other")
    await world.queue.request(other, {}, utcnow() - timedelta(hours=1))
    stop, end = asyncio.Event(), asyncio.Event()

    outcomes = await world.worker.drain(stop, end)

    assert outcomes == {Outcome.DONE: 1, Outcome.FAILED: 1}
    assert await world.worker.drain(stop, end) == {}
