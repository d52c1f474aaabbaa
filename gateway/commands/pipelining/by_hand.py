"""Jobs that somebody asks for and waits for: run here, unless a worker is faster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, Final

from gateway.bootstrap.work import Work
from gateway.commands.pipelining.progress import ProgressLine
from gateway.commands.text_table import printable, text_table
from gateway.domain.job import Job, JobState
from gateway.ports import utcnow
from gateway.work.craft import Wanted
from gateway.work.performance import Outcome, Performed
from gateway.work.runner import Progress

_POLL: Final = timedelta(seconds=1)
_TITLES: Final = ("job", "outcome", "seconds", "made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    name: str
    performed: Performed
    elapsed: timedelta
    # Whether a worker ran it, so that only it knows what was made.
    elsewhere: bool = field(default=False)


async def run_by_hand(work: Work, wanted: Sequence[Wanted], stop: asyncio.Event) -> Sequence[Ran]:
    """Run some jobs one after the other; those that others run are waited for."""
    ran = []
    for one in wanted:
        if stop.is_set():
            break
        ran.append(await _run(work, one, stop))
    return ran


def summary(ran: Sequence[Ran]) -> Iterator[str]:
    """Return the lines of a table of what became of the jobs, and of why some failed."""
    rows = [
        (one.name, one.performed.outcome.value, f"{one.elapsed.total_seconds():.1f}", _made(one))
        for one in ran
    ]
    yield from text_table(_TITLES, rows)
    for one in ran:
        name = printable(one.name)
        if one.performed.error:
            yield f"{name}: {printable(' '.join(one.performed.error.split()))}"
        if one.performed.outcome is Outcome.RETRIED:
            yield f"{name}: a worker will try again; to try now, run this command again"


def title(job: Job | Wanted) -> str:
    """Return what people call a job by."""
    name = ".".join(value for key, value in job.parameters.items() if key != "recipient")
    recipient = job.parameters.get("recipient")
    whose = f" for {recipient}" if recipient else ""
    return f"{job.key.kind} {name or job.key.subject}".rstrip() + whose


async def _run(work: Work, wanted: Wanted, stop: asyncio.Event) -> Ran:
    name, started = title(wanted), monotonic()
    line = ProgressLine(name)
    try:
        asked = await work.queue.request(wanted.key, wanted.parameters, utcnow())
        claim = await work.queue.claim_job(wanted.key)
        if claim is None:
            performed = await _awaited(work, asked, stop, line)
        else:
            line(Progress(message="starts", done=0, total=0))
            performed = await work.worker.perform(claim, stop, line)
    finally:
        line.end()
    elapsed = timedelta(seconds=monotonic() - started)
    return Ran(name=name, performed=performed, elapsed=elapsed, elsewhere=claim is None)


async def _awaited(work: Work, asked: Job, stop: asyncio.Event, line: ProgressLine) -> Performed:
    """Wait until a worker has run what was asked for."""
    while not stop.is_set():
        job = await work.queue.find(asked.key) or asked
        if job.done_sequence >= asked.sequence:
            return Performed(outcome=Outcome.DONE)
        if job.state is JobState.FAILED:
            return Performed(outcome=Outcome.FAILED, error=job.error)
        line(Progress(message=f"{job.state}, another worker has it ({job.worker})", done=0, total=0))
        await asyncio.sleep(_POLL.total_seconds())
    return Performed(outcome=Outcome.RELEASED)


def _made(one: Ran) -> str:
    if one.elsewhere:
        return "by another worker"
    if one.performed.result is None:
        return "nothing to do" if one.performed.outcome is Outcome.DONE else ""
    return ", ".join(_figures(one.performed.result))


def _figures(result: Mapping[str, Any]) -> Iterator[str]:
    for name, value in result.items():
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            yield f"{name.replace('_', ' ')}: {value:,}" if isinstance(value, int) else f"{name}: {value}"
