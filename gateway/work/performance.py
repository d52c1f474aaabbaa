"""One run of one job: planned, run, published and noted, as long as its lease holds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from gateway.domain.job import Claim, Job, JobKind, JobState
from gateway.errors import GatewayError, Internal, Unavailable
from gateway.ports import Clock
from gateway.work.craft import Craft
from gateway.work.lease import Lease, Sleep
from gateway.work.places import SparkPlaces
from gateway.work.queue import JobQueue
from gateway.work.runner import Order, Progress, RunFailed, Runner

log = logging.getLogger(__name__)


class Outcome(StrEnum):
    DONE = "done"
    # To be tried again later.
    RETRIED = "retried"
    FAILED = "failed"
    # Another worker has it, or may have.
    LOST = "lost"
    # Given back, for another worker to take.
    RELEASED = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    outcome: Outcome
    # What the run has made; None when there was nothing to do, or it did not end well.
    result: Mapping[str, Any] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What jobs are worked on with."""

    queue: JobQueue
    crafts: Mapping[JobKind, Craft]
    runner: Runner
    places: SparkPlaces
    # Spark's settings, as a run is given them.
    spark: Mapping[str, Any] = field(repr=False)
    lease_time: timedelta
    job_timeout: timedelta
    clock: Clock
    sleep: Sleep = asyncio.sleep


class Performance:
    def __init__(
        self, newest: Callable[[], Workshop], claim: Claim, tell: Callable[[Progress], None]
    ) -> None:
        self._newest = newest
        self._shop = shop = newest()
        self._job = claim.job
        self._tell = tell
        self._lease = Lease(shop.queue, claim, time=shop.lease_time, clock=shop.clock, sleep=shop.sleep)

    async def perform(self, stop: asyncio.Event) -> Performed:
        """Run the job to its end, or until its lease is lost, its time is over, or a stop is asked for."""
        async with self._lease.kept():
            limit = asyncio.timeout(self._shop.job_timeout.total_seconds())
            try:
                async with limit:
                    return await self._unless_ended(stop)
            except RunFailed as exc:
                return await self._failed(exc.message, retry=exc.retry)
            except GatewayError as exc:
                return await self._failed(exc.message, retry=isinstance(exc, Unavailable | Internal))
            except Exception:
                if limit.expired():
                    return await self._failed("it took longer than pipeline.jobTimeout allows", retry=False)
                log.exception("a job failed by a fault of our own", extra=_about(self._job))
                return await self._failed("internal error", retry=True)

    async def _unless_ended(self, stop: asyncio.Event) -> Performed:
        work = asyncio.create_task(self._work())
        ends = [asyncio.create_task(event.wait()) for event in (self._lease.lost, stop)]
        try:
            await asyncio.wait([work, *ends], return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
        finally:
            await _end(work, *ends)
        if self._lease.lost.is_set():
            return Performed(outcome=Outcome.LOST)
        await self._shop.queue.release(self._lease.claim)
        return Performed(outcome=Outcome.RELEASED)

    async def _work(self) -> Performed:
        job, shop = self._job, self._shop
        plan = await shop.crafts[job.key.kind].plan(job)
        if plan is None:
            return await self._completed(None)
        order = Order(
            kind=job.key.kind,
            plan=plan.body,
            spark=shop.spark,
            access=await shop.places.settings(plan.locations, reads=plan.reads, life=shop.job_timeout),
        )
        result = await shop.runner.run(order, self._tell)
        if not await self._lease.prove():
            return Performed(outcome=Outcome.LOST)
        # By the configuration of now: the run may have taken hours, and what it made may be wanted no more.
        await self._newest().crafts[job.key.kind].publish(job, plan, result)
        return await self._completed(result)

    async def _completed(self, result: Mapping[str, Any] | None) -> Performed:
        if await self._shop.queue.complete(self._lease.claim):
            return Performed(outcome=Outcome.DONE, result=result)
        return Performed(outcome=Outcome.LOST)

    async def _failed(self, error: str, *, retry: bool) -> Performed:
        job = await self._shop.queue.fail(self._lease.claim, error, retry=retry)
        if job is None:
            return Performed(outcome=Outcome.LOST, error=error)
        outcome = Outcome.FAILED if job.state is JobState.FAILED else Outcome.RETRIED
        return Performed(outcome=outcome, error=error)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        # What went wrong was told, or does not matter any more.
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


def _about(job: Job) -> dict[str, object]:
    return {"kind": job.key.kind, "subject": job.key.subject}
