"""Records of jobs in the state, each changed by compare-and-swap, whatever becomes of an answer."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from gateway.adapters.job_record import from_record, new_marker_key, record_key, to_record
from gateway.domain.job import Job, JobKey
from gateway.errors import Unavailable
from gateway.ports import Clock, StateStore

# Returns what a record is to become; itself: it is right as it is; None: there is nothing to do with it.
Step = Callable[[Job | None], Awaitable[Job | None]]

_ATTEMPTS: Final = 30
_MOST_FAILURES: Final = 3
_PAUSE: Final = timedelta(milliseconds=50)
# A marker that is older may be taken for abandoned before the request that it is for is noted.
_FRESH: Final = timedelta(minutes=1)

log = logging.getLogger(__name__)


class JobRecords:
    def __init__(self, state: StateStore, sleep: Callable[[float], Awaitable[object]]) -> None:
        self._state = state
        self._sleep = sleep

    async def read(self, key: str) -> Job | None:
        """Return the job of a record; None when there is none, or nothing that can be read as one."""
        job, _ = await self._read(key)
        return job

    async def change(self, key: JobKey, step: Step) -> Job | None:
        """Take a step, again and again until nobody else has come in between, and return what it led to."""
        record, wanted, failures = record_key(key), None, 0
        for attempt in range(_ATTEMPTS):
            job, tag = await self._read(record)
            if wanted is not None and job == wanted:
                # It was the answer that got lost.
                return job
            wanted = await step(job)
            if wanted is None or wanted == job:
                return wanted
            try:
                if await self._put(record, wanted, tag):
                    return wanted
            except Unavailable:
                failures += 1
                if failures >= _MOST_FAILURES:
                    raise
            await self._sleep(random.uniform(0, _PAUSE.total_seconds() * (attempt + 1)))  # noqa: S311
        raise Unavailable("too many change the same job at once; try again later")

    async def _read(self, record: str) -> tuple[Job | None, str]:
        entry = await self._state.get(record)
        if entry is None:
            return None, ""
        job = from_record(entry.content)
        if job is None:
            log.error("the record of a job cannot be read, and will be written anew", extra={"key": record})
        return job, entry.tag

    async def _put(self, record: str, job: Job, tag: str) -> str | None:
        if not tag:
            return await self._state.create(record, to_record(job))
        return await self._state.replace(record, to_record(job), tag)


class Marking:
    """The markers that one request makes."""

    def __init__(self, state: StateStore, key: JobKey, clock: Clock) -> None:
        self._state = state
        self._key = key
        self._clock = clock
        self._made: dict[int, str] = {}
        self._stale_at = clock()

    async def make(self, sequence: int) -> None:
        """Make a marker for this request, unless there is one of our own."""
        if sequence in self._made and self._clock() < self._stale_at:
            return
        marker = new_marker_key(self._key, sequence)
        # Nobody else has its name: whatever is said, it is there.
        await self._state.create(marker, b"")
        self._made[sequence] = marker
        self._stale_at = self._clock() + _FRESH

    async def confirm(self, job: Job) -> None:
        """Mark a request of ours anew that took so long to be noted that its marker may be gone."""
        if job.sequence in self._made:
            await self.make(job.sequence)

    async def tidy(self, job: Job) -> None:
        """Remove the markers of requests that were not noted, as another's was."""
        for sequence, marker in self._made.items():
            if sequence > job.sequence:
                try:
                    await self._state.delete(marker)
                except Unavailable:
                    log.info("a marker of a job is left for a worker to remove")
