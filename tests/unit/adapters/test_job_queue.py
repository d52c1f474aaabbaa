from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from gateway.adapters.job_queue import QueueMetrics, StateJobQueue
from gateway.adapters.job_record import new_marker_key, read_marker, record_key
from gateway.domain.job import JobKey, JobKind, JobState
from gateway.errors import Unavailable
from tests.fakes.state_store import FakeStateStore

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
LEASE = timedelta(seconds=30)
VIEW = JobKey(kind=JobKind.VIEW, subject="sales.eu.orders")
USAGE = JobKey(kind=JobKind.USAGE)
ALL = tuple(JobKind)


class World:
    """A state, a clock that every use moves on by a millisecond, and the queues of some processes."""

    def __init__(self) -> None:
        self.now = NOON
        self.state = FakeStateStore(clock=self.clock)

    def clock(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def wait(self, **span: float) -> None:
        self.now += timedelta(**span)

    def queue(self, worker: str = "a", metrics: QueueMetrics | None = None) -> StateJobQueue:
        async def sleep(seconds: float) -> None:
            await asyncio.sleep(0)

        return StateJobQueue(
            self.state, worker=worker, lease=LEASE, clock=self.clock, metrics=metrics, sleep=sleep
        )

    async def asked(self, key: JobKey = VIEW, **parameters: str):
        return await self.queue("asker").request(key, parameters, self.clock())

    @property
    def markers(self) -> list[tuple[str, int] | None]:
        return [read_marker(key) for key in self.state.entries if key.startswith("queue/")]


@pytest.fixture
def world():
    return World()


class Seen:
    """Metrics that remember the queue as it was last."""

    def set_queue(self, kind: JobKind, queued: int, running: int, oldest: timedelta) -> None:
        self.last = queued, running, oldest


async def test_how_long_the_oldest_waits_is_told_and_a_job_that_runs_does_not_wait(world):
    seen = Seen()
    await world.asked()
    world.wait(minutes=20)
    assert await world.queue(metrics=seen).claim([JobKind.VIEW]) is not None
    waited = seen.last
    await world.queue("b", metrics=seen).claim([JobKind.VIEW])

    assert waited[:2] == (1, 0)
    assert timedelta(minutes=20) <= waited[2] < timedelta(minutes=21)
    assert seen.last == (0, 1, timedelta(0))


async def test_a_look_tells_what_waits_and_takes_nothing(world):
    seen = Seen()
    await world.asked()
    world.wait(hours=2)
    await world.queue(metrics=seen).look([JobKind.VIEW])

    assert seen.last[:2] == (1, 0)
    assert timedelta(hours=2) <= seen.last[2] < timedelta(hours=3)
    assert (await world.queue().find(VIEW)).state is JobState.QUEUED


async def test_request_is_queued_with_a_marker_and_found(world):
    job = await world.asked(view="orders")

    assert (job.state, job.sequence, job.parameters) == (JobState.QUEUED, 1, {"view": "orders"})
    assert await world.queue().find(VIEW) == job
    assert world.markers == [(record_key(VIEW), 1)]
    assert await world.queue().find(USAGE) is None


async def test_second_request_joins_what_is_queued_and_tells_it_its_parameters(world):
    first = await world.asked(reason="one")
    second = await world.asked(reason="two")

    assert (second.sequence, second.requested_at) == (first.sequence, first.requested_at)
    assert (await world.queue().find(VIEW)).parameters == {"reason": "two"}
    assert len(world.markers) == 1


async def test_claim_takes_a_job_once_and_completes_it(world):
    await world.asked()
    claim = await world.queue("a").claim(ALL)

    assert (claim.job.key, claim.job.worker, claim.job.state) == (VIEW, "a", JobState.RUNNING)
    assert await world.queue("b").claim(ALL) is None
    assert await world.queue("a").complete(claim)

    job = await world.queue().find(VIEW)
    assert (job.state, job.done_sequence, job.worker) == (JobState.DONE, 1, "")
    assert await world.queue("b").claim(ALL) is None
    assert world.markers == []


async def test_claim_goes_by_kind_and_by_how_long_a_job_has_waited(world):
    await world.asked(USAGE)
    world.wait(seconds=1)
    await world.asked(VIEW)

    assert (await world.queue().claim([JobKind.VIEW])).job.key == VIEW
    await world.asked(JobKey(kind=JobKind.INDEX, subject="t"))
    assert (await world.queue().claim(ALL)).job.key == USAGE


async def test_run_that_began_in_time_serves_a_request(world):
    await world.asked()
    claim = await world.queue().claim(ALL)

    joined = await world.queue().request(VIEW, {}, claim.job.started_at)
    assert joined.sequence == 1
    await world.queue().complete(claim)
    assert (await world.queue().request(VIEW, {}, claim.job.started_at)).state is JobState.DONE
    assert (await world.queue().request(VIEW, {}, world.now)).state is JobState.QUEUED


async def test_request_during_a_run_that_began_before_is_served_by_the_next(world):
    await world.asked()
    claim = await world.queue().claim(ALL)
    later = await world.asked(reason="new")
    again = await world.asked(reason="new")

    assert (later.state, later.sequence, again.sequence) == (JobState.RUNNING, 2, 2)
    assert await world.queue().complete(claim)
    job = await world.queue().find(VIEW)
    assert (job.state, job.done_sequence, job.sequence) == (JobState.QUEUED, 1, 2)
    second = await world.queue().claim(ALL)
    assert second.job.parameters == {"reason": "new"}
    await world.queue().complete(second)
    assert (await world.queue().find(VIEW)).done_sequence == 2


async def test_renewed_lease_keeps_others_out(world):
    await world.asked()
    claim = await world.queue("a").claim(ALL)
    for _ in range(5):
        world.wait(seconds=20)
        claim = await world.queue("a").renew(claim)
        assert claim.leased_until > world.now + timedelta(seconds=29)
        assert await world.queue("b").claim(ALL) is None


async def test_job_of_a_dead_worker_is_taken_over_after_its_lease_and_a_margin(world):
    await world.asked()
    dead = await world.queue("a").claim(ALL)
    world.wait(seconds=34)
    assert await world.queue("b").claim(ALL) is None
    world.wait(seconds=1)

    claim = await world.queue("b").claim(ALL)

    assert (claim.job.worker, claim.job.attempts) == ("b", 1)
    assert await world.queue("a").renew(dead) is None
    assert not await world.queue("a").complete(dead)
    assert await world.queue("a").fail(dead, "late", retry=True) is None
    await world.queue("a").release(dead)
    assert (await world.queue().find(VIEW)).worker == "b"


async def test_lease_that_ended_and_that_nobody_took_is_renewed(world):
    await world.asked()
    claim = await world.queue("a").claim(ALL)
    world.wait(minutes=5)

    assert await world.queue("a").renew(claim)


async def test_job_that_kills_its_workers_has_failed(world):
    await world.asked()
    for worker in "abc":
        assert await world.queue(worker).claim(ALL)
        world.wait(minutes=1)

    assert await world.queue("d").claim(ALL) is None
    job = await world.queue().find(VIEW)
    assert (job.state, job.error) == (JobState.FAILED, "3 workers died while they ran it")
    await world.queue("d").claim(ALL)
    assert world.markers == []


async def test_released_job_is_taken_at_once_and_has_not_failed(world):
    await world.asked()
    claim = await world.queue("a").claim(ALL)
    await world.queue("a").release(claim)

    assert (await world.queue("b").claim(ALL)).job.attempts == 0
    assert await world.queue("a").renew(claim) is None


async def test_failure_is_tried_again_later_and_later_until_it_is_final(world):
    await world.asked()
    for pause in (10, 60):
        claim = await world.queue().claim(ALL)
        job = await world.queue().fail(claim, "no disk", retry=True)
        assert (job.state, job.error) == (JobState.QUEUED, "no disk")
        world.wait(seconds=pause - 1)
        assert await world.queue().claim(ALL) is None
        world.wait(seconds=1)
    job = await world.queue().fail(await world.queue().claim(ALL), "no disk", retry=True)

    assert (job.state, job.attempts) == (JobState.FAILED, 3)
    assert await world.queue().claim(ALL) is None


async def test_failure_that_another_try_cannot_help_is_final(world):
    await world.asked()
    job = await world.queue().fail(await world.queue().claim(ALL), "no such column", retry=False)

    assert job.state is JobState.FAILED


async def test_failed_job_is_told_of_for_a_while_and_then_tried_again(world):
    asked_at = world.now
    await world.asked()
    failed = await world.queue().fail(await world.queue().claim(ALL), "no", retry=False)

    assert await world.queue().request(VIEW, {}, asked_at) == failed
    assert (await world.queue().request(VIEW, {}, world.now)).state is JobState.QUEUED
    failed = await world.queue().fail(await world.queue().claim(ALL), "no", retry=False)
    world.wait(minutes=5)
    again = await world.queue().request(VIEW, {}, asked_at)
    assert (again.state, again.attempts, again.error) == (JobState.QUEUED, 0, "")


async def test_failure_of_an_older_request_leaves_the_newer_its_attempts(world):
    await world.asked()
    claim = await world.queue().claim(ALL)
    await world.asked()

    job = await world.queue().fail(claim, "no", retry=False)

    assert (job.state, job.attempts, job.sequence) == (JobState.QUEUED, 0, 2)


async def test_job_that_waits_after_a_failure_is_claimed_by_name(world):
    await world.asked()
    await world.queue().fail(await world.queue().claim(ALL), "no", retry=True)

    assert await world.queue().claim(ALL) is None
    assert await world.queue().claim_job(VIEW)
    assert await world.queue().claim_job(VIEW) is None
    assert await world.queue().claim_job(USAGE) is None


@pytest.mark.parametrize("method", ["create", "replace"])
@pytest.mark.parametrize("is_lost", [True, False], ids=["answer lost", "call failed"])
async def test_request_survives_a_call_that_fails(world, method, is_lost):
    await world.asked()
    await world.queue().complete(await world.queue().claim(ALL))
    (world.state.lose_next_answer if is_lost else world.state.fail_next)(method)

    if method == "create":
        # The marker: nothing is asked for yet.
        with pytest.raises(Unavailable):
            await world.asked()
    else:
        assert (await world.asked()).sequence == 2
    assert (await world.asked()).state is JobState.QUEUED
    assert await world.queue().claim(ALL)


@pytest.mark.parametrize("is_lost", [True, False], ids=["answer lost", "call failed"])
@pytest.mark.parametrize("act", ["claim", "renew", "complete", "fail"])
async def test_worker_survives_a_call_that_fails(world, act, is_lost):
    await world.asked()
    claim = None if act == "claim" else await world.queue().claim(ALL)
    (world.state.lose_next_answer if is_lost else world.state.fail_next)("replace")
    queue = world.queue()

    if act == "claim":
        assert (await queue.claim(ALL)).job.worker == "a"
    elif act == "renew":
        assert await queue.renew(claim)
    elif act == "complete":
        assert await queue.complete(claim)
    else:
        assert (await queue.fail(claim, "no", retry=True)).attempts == 1


async def test_claim_whose_answer_is_lost_is_known_though_the_job_was_asked_for_since(world):
    await world.asked()

    async def ask_again(method: str, key: str) -> None:
        if method == "replace":
            world.state.after = world.state.__class__().after
            await world.asked()
            raise Unavailable("lost")

    world.state.after = ask_again
    claim = await world.queue().claim(ALL)

    assert claim.job.worker == "a"
    job = await world.queue().find(VIEW)
    assert (job.sequence, job.claimed_sequence) == (2, 1)


async def test_state_that_is_away_is_unavailable(world):
    async def fail(method: str, key: str) -> None:
        raise Unavailable("away")

    world.state.before = fail
    with pytest.raises(Unavailable):
        await world.asked()
    with pytest.raises(Unavailable):
        await world.queue().claim(ALL)


async def test_marker_of_a_crashed_request_goes_after_a_while(world):
    world.state.fail_next("replace")
    await world.state.create(new_marker_key(VIEW, 1), b"")
    await world.queue().claim(ALL)
    assert world.markers

    world.wait(minutes=11)
    await world.queue().claim(ALL)
    assert world.markers == []


async def test_worker_that_is_held_up_takes_no_request_that_was_noted_meanwhile_for_abandoned(world):
    noted = new_marker_key(VIEW, 1)
    await world.state.create(noted, b"")

    async def suspended(method: str, key: str) -> None:
        if (method, key) == ("get", record_key(VIEW)):
            world.wait(minutes=11)

    world.state.after = suspended
    await world.queue().claim(ALL)

    assert noted in world.state.entries


async def test_request_that_took_long_to_be_noted_is_marked_anew(world):
    async def suspended(method: str, key: str) -> None:
        if method == "create" and key == record_key(VIEW):
            world.wait(minutes=20)
            # A worker has taken it for abandoned.
            for marker in [key for key in world.state.entries if key.startswith("queue/")]:
                del world.state.entries[marker]

    world.state.before = suspended
    await world.asked()

    assert world.markers == [(record_key(VIEW), 1)]


async def test_request_makes_a_marker_of_its_own_beside_that_of_another(world):
    """The other's may be taken for abandoned at any moment."""
    await world.state.create(new_marker_key(VIEW, 1), b"")
    world.wait(minutes=11)

    await world.asked()

    assert world.markers == [(record_key(VIEW), 1)] * 2
    await world.queue().complete(await world.queue().claim(ALL))
    await world.queue().claim(ALL)
    assert world.markers == []


async def test_many_requests_at_once_are_one_job_whose_markers_go_with_it(world):
    jobs = await asyncio.gather(*(world.asked() for _ in range(20)))

    assert {job.sequence for job in jobs} == {1}
    await world.queue().complete(await world.queue().claim(ALL))
    assert await world.queue().claim(ALL) is None
    assert world.markers == []


async def test_many_workers_claim_each_job_once(world):
    keys = [JobKey(kind=JobKind.INDEX, subject=f"t{number}") for number in range(8)]
    for key in keys:
        await world.asked(key)

    claims = await asyncio.gather(*(world.queue(f"w{number}").claim(ALL) for number in range(12)))

    taken = [claim.job.key for claim in claims if claim]
    assert len(taken) == len(set(taken))


async def test_record_that_cannot_be_read_is_written_anew(world, caplog):
    await world.state.create(record_key(VIEW), b"{nonsense")

    assert await world.queue().find(VIEW) is None
    assert (await world.asked()).state is JobState.QUEUED
    assert await world.queue().claim(ALL)
    assert "written anew" in caplog.text


async def test_jobs_are_listed_for_people(world):
    await world.asked(USAGE)
    await world.asked(VIEW)

    assert {job.key for job in await world.queue().list_jobs(ALL)} == {USAGE, VIEW}
    assert [job.key for job in await world.queue().list_jobs([JobKind.VIEW])] == [VIEW]
