"""Jobs as they are listed, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.commands.bearer import format_time
from gateway.commands.pipelining.by_hand import title
from gateway.commands.safe_json import to_safe_json
from gateway.commands.text_table import text_table
from gateway.domain.job import Job, JobState

_TITLES: Final = ("job", "state", "asked for", "began", "ended", "attempts", "worker", "error")
_MOST_ERROR: Final = 60


def to_text(jobs: Sequence[Job]) -> str:
    """Return a table, of what is queued and running first."""
    if not jobs:
        return "no job was ever asked for"
    return "\n".join(text_table(_TITLES, [_row(job) for job in sorted(jobs, key=_order)]))


def to_json(jobs: Sequence[Job]) -> str:
    return to_safe_json([_to_dict(job) for job in sorted(jobs, key=_order)])


def _order(job: Job) -> tuple[int, float]:
    return list(JobState).index(job.state), -job.requested_at.timestamp()


def _row(job: Job) -> tuple[str, ...]:
    times = [format_time(at) if at else "" for at in (job.requested_at, job.started_at, job.finished_at)]
    error = job.error if len(job.error) <= _MOST_ERROR else f"{job.error[:_MOST_ERROR]}…"
    return title(job), job.state.value, *times, str(job.attempts), job.worker, " ".join(error.split())


def _to_dict(job: Job) -> dict[str, object]:
    times = {
        "requestedAt": job.requested_at,
        "startedAt": job.started_at,
        "finishedAt": job.finished_at,
        "leasedUntil": job.leased_until,
        "notBefore": job.not_before,
    }
    return {
        "kind": job.key.kind,
        "subject": job.key.subject,
        "parameters": dict(job.parameters),
        "state": job.state,
        "sequence": job.sequence,
        "doneSequence": job.done_sequence,
        "attempts": job.attempts,
        "worker": job.worker,
        "error": job.error,
        **{name: format_time(at) for name, at in times.items() if at is not None},
    }
