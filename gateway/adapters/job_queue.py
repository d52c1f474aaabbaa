"""The jobs of a deployment, in the state that its replicas and workers share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from gateway.adapters.job_record import MARKERS, RECORDS, read_marker, record_key
from gateway.adapters.job_record_store import JobRecords, Marking
from gateway.domain import job_life
from gateway.domain.job import Claim, Job, JobKey, JobKind, JobState
from gateway.ports import Clock, StateKey, StateStore

_PAGE: Final = 1000
# Jobs that are looked at for one claim; the others have their turn by chance.
_MOST_LOOKED_AT: Final = 64
_AT_ONCE: Final = 16
# Whoever made a marker for a request that is not noted by now has died.
_ABANDONED: Final = timedelta(minutes=10)


class QueueMetrics(Protocol):
    def set_queue(self, kind: JobKind, queued: int, running: int, oldest: timedelta) -> None:
        """Tell how many jobs were seen to wait, for how long, and how many to be run by somebody."""


class StateJobQueue:
    """Is the port ``Jobs``, and the queue of a worker.

    While a job is open there is a marker for its latest request, so that workers need not read all records.
    It is made before the request is noted, by whoever notes it and under a name of its own: another's may be
    about to be removed. So a crash leaves a marker too many at worst, and never a request that no worker
    sees.
    """

    def __init__(
        self,
        state: StateStore,
        *,
        worker: str,
        lease: timedelta,
        clock: Clock,
        metrics: QueueMetrics | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._state = state
        self._records = JobRecords(state, sleep)
        # A name that no other process has, or has had.
        self._worker = worker
        self._lease = lease
        self._clock = clock
        self._metrics = metrics
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def find(self, key: JobKey) -> Job | None:
        return await self._records.read(record_key(key))

    async def request(self, key: JobKey, parameters: Mapping[str, str], since: datetime) -> Job:
        marking = Marking(self._state, key, self._clock)

        async def step(job: Job | None) -> Job:
            asked = job_life.request(job, key, parameters, since=since, now=self._clock())
            if job is None or asked.sequence > job.sequence:
                await marking.make(asked.sequence)
            return asked

        job = await self._records.change(key, step)
        if job is None:
            raise RuntimeError("a request leads to a job")
        await marking.confirm(job)
        await marking.tidy(job)
        return job

    async def claim(self, kinds: Collection[JobKind]) -> Claim | None:
        """Take the job of these kinds that has waited longest; None when there is nothing to do."""
        found: list[Job] = []
        for kind in kinds:
            found += await self._open_jobs(kind)
        for job in sorted(found, key=lambda one: one.requested_at):
            if self._claimed(job, patient=True) and (claim := await self._claim(job.key, patient=True)):
                return claim
        return None

    async def look(self, kinds: Collection[JobKind]) -> None:
        """Tell what waits and for how long, and take nothing."""
        for kind in kinds:
            await self._open_jobs(kind)

    async def claim_job(self, key: JobKey) -> Claim | None:
        """Take this job, even if it should wait after a failure; None when it is not there to be taken."""
        return await self._claim(key, patient=False)

    async def renew(self, claim: Claim) -> Claim | None:
        """Prove the lease and extend it; None when it is lost: the job is another's, or nobody's."""
        until = self._clock() + self._lease
        job = await self._while_held(claim, lambda job: replace(job, leased_until=until))
        return None if job is None else replace(claim, leased_until=until)

    async def release(self, claim: Claim) -> None:
        """Give the job back untried: another worker may take it at once."""
        await self._while_held(claim, job_life.release)

    async def complete(self, claim: Claim) -> bool:
        """Note that the run ended well; tell whether the lease was still there to say so."""
        now = self._clock()
        job = await self._while_held(claim, lambda job: job_life.complete(job, now))
        return job is not None

    async def fail(self, claim: Claim, error: str, *, retry: bool) -> Job | None:
        """Note that the run failed, to be tried again later where that may help; None: the lease was lost."""
        now = self._clock()
        return await self._while_held(claim, lambda job: job_life.fail(job, error, retry=retry, now=now))

    async def list_jobs(self, kinds: Collection[JobKind]) -> Sequence[Job]:
        """Return all jobs of these kinds, for people."""
        found: list[Job | None] = []
        for kind in kinds:
            keys = [one.key for one in await self._list(f"{RECORDS}/{kind}/", most=None)]
            found += await asyncio.gather(*(self._read(key) for key in keys))
        return [job for job in found if job is not None]

    async def _claim(self, key: JobKey, *, patient: bool) -> Claim | None:
        mine: Job | None = None

        async def step(job: Job | None) -> Job | None:
            nonlocal mine
            if job is None or (mine is not None and job_life.is_held(job, mine)):
                # Only the answer got lost, and somebody has asked for the job again since.
                return job
            mine = self._claimed(job, patient=patient)
            return mine

        job = await self._records.change(key, step)
        if job is None or mine is None or not job_life.is_held(job, mine) or job.leased_until is None:
            return None
        return Claim(job=job, leased_until=job.leased_until)

    def _claimed(self, job: Job, *, patient: bool) -> Job | None:
        return job_life.claim(job, self._worker, lease=self._lease, now=self._clock(), patient=patient)

    async def _while_held(self, claim: Claim, step: Callable[[Job], Job]) -> Job | None:
        async def checked(job: Job | None) -> Job | None:
            return step(job) if job is not None and job_life.is_held(job, claim.job) else None

        return await self._records.change(claim.job.key, checked)

    async def _open_jobs(self, kind: JobKind) -> list[Job]:
        markers: dict[str, list[tuple[int, StateKey]]] = {}
        for found in await self._list(f"{MARKERS}/{kind}/", most=_PAGE):
            if (read := read_marker(found.key)) is not None:
                record, sequence = read
                markers.setdefault(record, []).append((sequence, found))
        looked_at = random.sample(sorted(markers), min(len(markers), _MOST_LOOKED_AT))
        jobs = await asyncio.gather(*(self._look(record, markers[record]) for record in looked_at))
        found_open = [job for job in jobs if job is not None]
        if self._metrics is not None:
            running = sum(job.state is JobState.RUNNING for job in found_open)
            self._metrics.set_queue(kind, len(markers) - running, running, self._oldest(found_open))
        return found_open

    def _oldest(self, jobs: Sequence[Job]) -> timedelta:
        waiting = [self._clock() - job.requested_at for job in jobs if job.state is JobState.QUEUED]
        return max(waiting, default=timedelta(0))

    async def _look(self, record: str, markers: Sequence[tuple[int, StateKey]]) -> Job | None:
        """Return a job that is open, and remove the markers that say so in vain."""
        # Of before the look: who is held up after it may take a request that was noted since for abandoned.
        now = self._clock()
        job = await self._read(record)
        latest = 0 if job is None else job.sequence
        is_open = job is not None and job_life.is_open(job)
        for sequence, marker in markers:
            is_over = sequence < latest or (sequence == latest and not is_open)
            if is_over or (sequence > latest and now > marker.modified_at + _ABANDONED):
                await self._state.delete(marker.key)
        return job if is_open else None

    async def _read(self, record: str) -> Job | None:
        async with self._gate:
            return await self._records.read(record)

    async def _list(self, prefix: str, *, most: int | None) -> list[StateKey]:
        found: list[StateKey] = []
        while page := await self._state.list(prefix, after=found[-1].key if found else "", limit=_PAGE):
            found += page
            if most is not None and len(found) >= most:
                # The others are not always to come last.
                start = f"{prefix}{random.randrange(16**4):04x}"  # noqa: S311
                return [*await self._state.list(prefix, after=start, limit=_PAGE), *page]
        return found
