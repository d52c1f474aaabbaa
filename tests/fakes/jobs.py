"""A queue that nobody works on unless a test says what became of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from gateway.domain.job import Job, JobKey, JobState
from gateway.ports import Clock, utcnow


class FakeJobs:
    """Is the port ``Jobs`` in memory; ``asked`` has every request that it was given."""

    def __init__(self, clock: Clock = utcnow) -> None:
        self.jobs: dict[JobKey, Job] = {}
        self.asked: list[tuple[JobKey, Mapping[str, str], datetime]] = []
        # Raised instead of an answer.
        self.error: Exception | None = None
        self._clock = clock

    async def request(self, key: JobKey, parameters: Mapping[str, str], since: datetime) -> Job:
        if self.error is not None:
            raise self.error
        self.asked.append((key, parameters, since))
        job = self.jobs.get(key)
        if job is None or job.state is JobState.DONE:
            sequence = 1 if job is None else job.sequence + 1
            job = Job(
                key=key,
                sequence=sequence,
                state=JobState.QUEUED,
                parameters=parameters,
                requested_at=self._clock(),
            )
            self.jobs[key] = job
        return job

    async def find(self, key: JobKey) -> Job | None:
        if self.error is not None:
            raise self.error
        return self.jobs.get(key)

    def end(self, key: JobKey, state: JobState, error: str = "") -> None:
        """Have a job end as it is said to."""
        self.jobs[key] = replace(self.jobs[key], state=state, finished_at=self._clock(), error=error)
