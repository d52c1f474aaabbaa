"""A worker: takes one job after the other, and asks for what is due."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection
from datetime import timedelta
from time import monotonic
from typing import Final, Protocol

from gateway.domain.job import Claim, Job, JobKind
from gateway.errors import GatewayError
from gateway.work.performance import Outcome, Performance, Performed, Workshop
from gateway.work.runner import Progress
from gateway.work.schedule import Schedule

# How long a worker without work waits before it looks again.
_POLL: Final = timedelta(seconds=2)
_AFTER_FAILURE: Final = timedelta(seconds=10)
# A runner that has had nothing to do for so long gives back its memory.
_IDLE: Final = timedelta(minutes=10)
_SCHEDULE: Final = timedelta(seconds=5)
# How often a busy worker looks at what waits meanwhile; one without work sees it whenever it asks for some.
_LOOK: Final = timedelta(seconds=5)

log = logging.getLogger(__name__)


class WorkMetrics(Protocol):
    def observe_run(self, kind: JobKind, outcome: str, elapsed: timedelta) -> None:
        """Count a run that ended, by how it did."""

    def count_lease_loss(self, kind: JobKind) -> None: ...


class Worker:
    def __init__(
        self,
        shop: Workshop,
        metrics: WorkMetrics,
        *,
        poll: timedelta = _POLL,
        pause: timedelta = _AFTER_FAILURE,
        idle: timedelta = _IDLE,
        look: timedelta = _LOOK,
    ) -> None:
        # Replaced as a whole by whoever takes up another configuration.
        self.shop = shop
        self._metrics = metrics
        self._poll = poll
        self._pause = pause
        self._idle = idle
        self._look = look
        self._worked_at = monotonic()
        self._schedule = Schedule(shop.queue, shop.clock)
        # Why the state could not be reached last; empty while it can.
        self.trouble = ""

    async def work(self, stop: asyncio.Event, end: asyncio.Event) -> None:
        """Work until a stop is asked for; the job under way goes on until the end is asked for too."""
        aside = [asyncio.create_task(self._keep_asking()), asyncio.create_task(self._keep_looking())]
        try:
            while not stop.is_set():
                pause = await self._work_once(end)
                if pause is not None:
                    await _wait(stop, pause)
        finally:
            for task in aside:
                task.cancel()
            await asyncio.gather(*aside, return_exceptions=True)
            await self.shop.runner.close()

    async def drain(self, stop: asyncio.Event, end: asyncio.Event) -> Counter[Outcome]:
        """Ask for what is due, work until nothing is left to be taken, and count what became of it."""
        outcomes: Counter[Outcome] = Counter()
        try:
            await self._schedule.ask_for_due(self.shop.crafts)
            while not stop.is_set() and (claim := await self.shop.queue.claim(self._kinds)):
                performed = await self.perform(claim, end)
                outcomes[performed.outcome] += 1
        finally:
            await self.shop.runner.close()
        return outcomes

    async def perform(
        self, claim: Claim, end: asyncio.Event, tell: Callable[[Progress], None] | None = None
    ) -> Performed:
        """Run one job that was claimed."""
        job, started = claim.job, monotonic()
        log.info("a job begins", extra=_about(job))
        performed = await Performance(lambda: self.shop, claim, tell or _logging(job)).perform(end)
        elapsed = timedelta(seconds=monotonic() - started)
        self._metrics.observe_run(job.key.kind, performed.outcome, elapsed)
        if performed.outcome is Outcome.LOST:
            self._metrics.count_lease_loss(job.key.kind)
        level = logging.INFO if performed.outcome in {Outcome.DONE, Outcome.RELEASED} else logging.WARNING
        told = {"outcome": performed.outcome, "seconds": round(elapsed.total_seconds(), 3)}
        log.log(level, "a job ends: %s", performed.error or performed.outcome, extra=_about(job) | told)
        return performed

    @property
    def _kinds(self) -> Collection[JobKind]:
        return tuple(self.shop.crafts)

    async def _work_once(self, end: asyncio.Event) -> timedelta | None:
        """Run one job where there is one, and return how long to wait before the next."""
        try:
            claim = await self.shop.queue.claim(self._kinds)
            self.trouble = ""
            if claim is None:
                if monotonic() - self._worked_at > self._idle.total_seconds():
                    await self.shop.runner.close()
                # Not all at the same time.
                return self._poll * random.uniform(0.5, 1.5)  # noqa: S311
            await self.perform(claim, end)
            self._worked_at = monotonic()
        except GatewayError as exc:
            # The job, if there was one, is another worker's as soon as its lease is over.
            log.warning("the state of the jobs cannot be read or written: %s", exc.message)
            self.trouble = exc.message
            return self._pause
        except Exception:
            log.exception("a worker goes on after a fault of our own")
            return self._pause
        return None

    async def _keep_asking(self) -> None:
        while True:
            try:
                await self._schedule.ask_for_due(self.shop.crafts)
            except Exception:
                log.exception("what is due could not be asked for")
            await asyncio.sleep(_SCHEDULE.total_seconds())

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._look.total_seconds())
            try:
                await self.shop.queue.look(self._kinds)
            except GatewayError:
                # The lease of the job under way cannot be renewed either, which is told of.
                log.debug("what waits could not be looked at")
            except Exception:
                log.exception("what waits could not be looked at")


async def _wait(event: asyncio.Event, time: timedelta) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(time.total_seconds()):
            await event.wait()


def _logging(job: Job) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        log.info("%s", progress.message, extra=_about(job) | {"done": progress.done, "total": progress.total})

    return tell


def _about(job: Job) -> dict[str, object]:
    return {"kind": job.key.kind, "subject": job.key.subject, "sequence": job.sequence}
