"""How a job goes from one state to the next. Each step is taken on what the state says, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from gateway.domain.job import Job, JobKey, JobState

MOST_ATTEMPTS: Final = 3
# Waited after each attempt that failed but the last.
_PAUSES: Final = (timedelta(seconds=10), timedelta(minutes=1))
# So long whoever asks is told of a failure instead of having it tried again.
_FAILURE_LASTS: Final = timedelta(minutes=5)
_LONGEST_ERROR: Final = 2000
# Clocks differ: a lease is believed for this part of itself longer than its end.
_MARGIN: Final = 6


def request(
    job: Job | None, key: JobKey, parameters: Mapping[str, str], *, since: datetime, now: datetime
) -> Job:
    """Return the job with a run asked for that begins at ``since`` or later; itself when it has one."""
    if job is None:
        return Job(key=key, sequence=1, state=JobState.QUEUED, parameters=dict(parameters), requested_at=now)
    if _serves(job, since, now):
        # Its next run is still to be planned, and should go by what was said last.
        return replace(job, parameters=dict(parameters)) if job.state is JobState.QUEUED else job
    asked = replace(job, sequence=job.sequence + 1, parameters=dict(parameters), requested_at=now)
    if job.state is JobState.RUNNING:
        return asked
    return replace(asked, state=JobState.QUEUED, attempts=0, error="", not_before=None)


def claim(job: Job, worker: str, *, lease: timedelta, now: datetime, patient: bool = True) -> Job | None:
    """Return the job as a worker's own; None when it is not to be had. One that kills workers has failed."""
    if job.state is JobState.QUEUED:
        if patient and job.not_before is not None and now < job.not_before:
            return None
        attempts = job.attempts
    elif job.state is JobState.RUNNING and _is_abandoned(job, lease, now):
        attempts = job.attempts + 1
        if attempts >= MOST_ATTEMPTS:
            return _failed(job, f"{attempts} workers died while they ran it", attempts, now)
    else:
        return None
    return replace(
        job,
        state=JobState.RUNNING,
        worker=worker,
        started_at=now,
        leased_until=now + lease,
        claimed_sequence=job.sequence,
        attempts=attempts,
        not_before=None,
    )


def is_held(job: Job, mine: Job) -> bool:
    """Tell whether the job is still run as it was when a worker took it, and by that worker."""
    return job.state is JobState.RUNNING and job.worker == mine.worker and job.started_at == mine.started_at


def release(job: Job) -> Job:
    """Return the job for others to take at once; being given back is no failure of its own."""
    return replace(job, state=JobState.QUEUED, worker="", leased_until=None)


def complete(job: Job, now: datetime) -> Job:
    ended = replace(
        job,
        worker="",
        leased_until=None,
        finished_at=now,
        done_sequence=job.claimed_sequence,
        attempts=0,
        error="",
    )
    # Asked for again since this run began.
    is_wanted = job.sequence > job.claimed_sequence
    return replace(ended, state=JobState.QUEUED if is_wanted else JobState.DONE)


def fail(job: Job, error: str, *, retry: bool, now: datetime) -> Job:
    """Return the job to be tried again later, or as failed where that was often enough or cannot help."""
    attempts = job.attempts + 1
    if job.sequence > job.claimed_sequence:
        # What failed was for another request: the latest has had no attempt yet.
        attempts, retry = 0, True
    if not retry or attempts >= MOST_ATTEMPTS:
        return _failed(job, error, attempts, now)
    pause = _PAUSES[min(max(attempts, 1), len(_PAUSES)) - 1]
    return replace(
        release(job), attempts=attempts, error=error[:_LONGEST_ERROR], finished_at=now, not_before=now + pause
    )


def is_open(job: Job) -> bool:
    """Tell whether a worker has something to do, or does it."""
    return job.state in {JobState.QUEUED, JobState.RUNNING}


def _serves(job: Job, since: datetime, now: datetime) -> bool:
    began_in_time = job.started_at is not None and job.started_at >= since
    if job.state is JobState.QUEUED:
        return True
    if job.state is JobState.RUNNING:
        return began_in_time or job.sequence > job.claimed_sequence
    if job.state is JobState.DONE:
        return began_in_time
    return began_in_time and job.finished_at is not None and now < job.finished_at + _FAILURE_LASTS


def _is_abandoned(job: Job, lease: timedelta, now: datetime) -> bool:
    return job.leased_until is None or now >= job.leased_until + lease / _MARGIN


def _failed(job: Job, error: str, attempts: int, now: datetime) -> Job:
    return replace(
        job,
        state=JobState.FAILED,
        worker="",
        leased_until=None,
        finished_at=now,
        attempts=attempts,
        error=error[:_LONGEST_ERROR],
        not_before=None,
    )
