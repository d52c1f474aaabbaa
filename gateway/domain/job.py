"""Work that is done elsewhere: asked for by anybody, done by one worker at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class JobKind(StrEnum):
    # Audit events into the tables of usage.
    USAGE = "usage"
    # A table's log into an index of its files.
    INDEX = "index"
    # A view into a directory that shows it.
    VIEW = "view"


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKey:
    """What a job is about. There is one job for it at a time, whoever asks."""

    kind: JobKind
    # A table, a materialisation, or nothing where a kind has one job only; in the words of its kind.
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The state of the latest request for a job, and of the last run that ended."""

    key: JobKey
    # Counts the requests that were not served by a run that was asked for before.
    sequence: int
    state: JobState
    # What the planner needs besides the key; names, and no secret.
    parameters: Mapping[str, str] = field(default_factory=dict)
    requested_at: datetime
    # When the run that is under way, or that ended last, began.
    started_at: datetime | None = None
    finished_at: datetime | None = None
    # The request that the last run to end well was for; 0 before the first.
    done_sequence: int = 0
    # The request that the run under way, or that ended last, is for.
    claimed_sequence: int = 0
    # Runs of the latest request that failed or died.
    attempts: int = 0
    # Why the last one failed, in words for whoever asked for it.
    error: str = ""
    # Who runs it, and until when nobody else may.
    worker: str = ""
    leased_until: datetime | None = None
    # Not before this time is it tried again.
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job that one worker runs, as it was when the worker took it."""

    job: Job
    # When the lease that was proved last ends, by the worker's clock.
    leased_until: datetime
