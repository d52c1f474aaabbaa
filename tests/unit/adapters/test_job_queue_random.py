"""Many processes, one state, and whatever can go wrong between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.job_queue import StateJobQueue
from gateway.adapters.job_record import MARKERS, RECORDS, from_record, marker_prefix, record_key
from gateway.domain import job_life
from gateway.domain.job import Job, JobKey, JobKind, JobState
from gateway.errors import Unavailable
from tests.fakes.state_store import FakeStateStore

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
LEASE = timedelta(seconds=30)
SKEW = timedelta(seconds=2)
KEYS = (JobKey(kind=JobKind.USAGE), *(JobKey(kind=JobKind.VIEW, subject=f"v{n}") for n in range(2)))
ALL = tuple(JobKind)


class Crash(Exception):
    """The process is gone, at whatever it was."""


class CheckedState(FakeStateStore):
    """Holds every change of a record to the rules, whoever makes it."""

    def __init__(self, clock) -> None:
        super().__init__(clock=clock)
        # When each run really began, which is not before it says: its claim takes time to be noted.
        self.began: dict[tuple[JobKey, str, datetime | None], datetime] = {}
        # When the run began that served a request.
        self.served: dict[tuple[JobKey, int], datetime] = {}
        self.takeovers = 0

    def _put(self, key: str, content: bytes, tag: str | None) -> str | None:
        before = self._content(key)
        answer = super()._put(key, content, tag)
        if answer is not None and key.startswith(f"{RECORDS}/"):
            self._check(from_record(before) if before else None, _job(content))
        return answer

    def _check(self, old: Job | None, new: Job) -> None:
        assert self.is_marked(new)
        if new.state is JobState.RUNNING:
            self.began.setdefault((new.key, new.worker, new.started_at), self._clock())
        if old is None:
            return
        assert new.sequence >= old.sequence
        assert new.claimed_sequence >= old.claimed_sequence >= old.done_sequence
        assert new.done_sequence >= old.done_sequence
        if old.state is new.state is JobState.RUNNING and old.worker != new.worker:
            self.takeovers += 1
            assert _known(new.started_at) >= _known(old.leased_until), "two leases at once"
        if new.done_sequence > old.done_sequence:
            for sequence in range(old.done_sequence + 1, new.done_sequence + 1):
                self.served[new.key, sequence] = self.began[new.key, old.worker, old.started_at]

    async def delete(self, key: str) -> None:
        await super().delete(key)
        if key.startswith(f"{MARKERS}/"):
            self.check_markers()

    def check_markers(self) -> None:
        for key, (content, _) in self.entries.items():
            job = from_record(content) if key.startswith(f"{RECORDS}/") else None
            assert job is None or self.is_marked(job)

    def is_marked(self, job: Job) -> bool:
        prefix = marker_prefix(job.key, job.sequence)
        return not job_life.is_open(job) or any(key.startswith(prefix) for key in self.entries)


class World:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = NOON
        self.state = CheckedState(self.clock)
        self.acknowledged: list[tuple[JobKey, int, datetime]] = []
        self.published: list[tuple[JobKey, int]] = []
        self.processes = 0
        self.is_calm = False
        self.state.before = self.trouble
        self.state.after = self.trouble

    def clock(self) -> datetime:
        return self.now

    async def trouble(self, method: str, key: str) -> None:
        self.now += timedelta(milliseconds=self.rng.choice([1, 5, 50, 2000]))
        for _ in range(self.rng.randrange(3)):
            await asyncio.sleep(0)
        if self.is_calm:
            return
        chance = self.rng.random()
        if chance < 0.04:
            raise Unavailable("lost")
        if chance < 0.07:
            raise Crash

    def skewed(self) -> Callable[[], datetime]:
        """Return the clock of a process."""
        skew = SKEW * self.rng.uniform(-1, 1)
        return lambda: self.now + skew

    def queue(self, clock: Callable[[], datetime] | None = None) -> StateJobQueue:
        self.processes += 1

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(0)

        return StateJobQueue(
            self.state,
            worker=f"p{self.processes}",
            lease=LEASE,
            clock=clock or self.skewed(),
            sleep=sleep,
        )

    async def ask(self) -> None:
        clock = self.skewed()
        queue, key = self.queue(clock), self.rng.choice(KEYS)
        since = clock() - timedelta(seconds=self.rng.choice([0, 0, 10, 100]))
        job = await queue.request(key, {}, since)
        self.acknowledged.append((key, job.sequence, since))

    async def work(self) -> None:
        """Take a job and run it for some while, as a worker does that may die at any await."""
        queue = self.queue()
        claim = await queue.claim(ALL)
        if claim is None:
            return
        for _ in range(self.rng.randrange(4)):
            self.now += timedelta(seconds=self.rng.choice([1, 8, 40]))
            claim = await queue.renew(claim)
            if claim is None:
                return
        end = self.rng.random()
        if end < 0.6:
            if (claim := await queue.renew(claim)) is not None:
                self.published.append((claim.job.key, claim.job.claimed_sequence))
                await queue.complete(claim)
        elif end < 0.8:
            await queue.fail(claim, "no", retry=self.rng.random() < 0.8)
        else:
            await queue.release(claim)

    async def process(self, act) -> None:
        for _ in range(self.rng.randrange(1, 6)):
            for _ in range(self.rng.randrange(20)):
                await asyncio.sleep(0)
            try:
                await act()
            except (Unavailable, Crash):
                # Another process goes on, under another name.
                continue

    async def settle(self) -> None:
        """Let everything work, for as long as it takes."""
        self.is_calm = True
        for _ in range(200):
            self.now += timedelta(minutes=2)
            clock = self.skewed()
            queue = self.queue(clock)
            while (claim := await queue.claim(ALL)) is not None:
                assert await queue.renew(claim)
                assert await queue.complete(claim)
            jobs = await queue.list_jobs(ALL)
            for job in jobs:
                if job.state is JobState.FAILED:
                    await queue.request(job.key, {}, clock())
            if not any(job_life.is_open(job) for job in await queue.list_jobs(ALL)):
                return
        pytest.fail("what was asked for is never done")


@given(st.integers(min_value=0, max_value=2**32))
def test_whatever_was_acknowledged_is_done_and_no_job_has_two_leases(seed):
    asyncio.run(_play(seed))


async def _play(seed: int) -> None:
    rng = random.Random(seed)
    world = World(rng)
    for _ in range(6):
        acts = [world.ask if rng.random() < 0.5 else world.work for _ in range(8)]
        await asyncio.gather(*(world.process(act) for act in acts))
        world.state.check_markers()
        # Long enough for what somebody left behind to be taken for abandoned.
        world.now += rng.choice([timedelta(0), timedelta(minutes=11)])
    await world.settle()
    for key, sequence, since in world.acknowledged:
        began_at = world.state.served.get((key, sequence))
        job = _job(world.state.entries[record_key(key)][0])
        assert job.done_sequence >= sequence, (key, sequence)
        assert began_at is not None
        assert began_at >= since - SKEW, (key, sequence)
    # Every trace of work in progress goes, once its makers are surely dead.
    world.now += timedelta(minutes=11)
    await world.queue().claim(ALL)
    assert [key for key in world.state.entries if key.startswith(MARKERS)] == []


def _job(content: bytes) -> Job:
    job = from_record(content)
    assert job is not None
    return job


def _known(at: datetime | None) -> datetime:
    assert at is not None
    return at
