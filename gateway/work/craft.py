"""What a worker has to know of a kind of job: what is to be done, and what becomes of what was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from gateway.domain.job import Job, JobKey
from gateway.domain.location import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A job that somebody may ask for."""

    key: JobKey
    # What its planner needs besides; names, and no secret.
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A job that is due whenever its last run began so long ago."""

    wanted: Wanted
    every: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a run needs, to be sent to it as JSON. Holds no secret."""

    # Not shown: it may hold what a recipient's view is filtered by.
    body: Mapping[str, Any] = field(repr=False)
    # What the run reads and writes: it is given access to the storages of these, and of no other.
    locations: tuple[Location, ...] = ()
    # Those of them that it only reads.
    reads: tuple[Location, ...] = ()


class Craft(Protocol):
    """One for each kind of job."""

    def scheduled(self) -> Sequence[Scheduled]:
        """Return the jobs that the configuration wants done again and again."""

    def named(self, name: str, recipient: str = "") -> Sequence[Wanted]:
        """Return the jobs of what people call by this name, for a recipient or for all.

        Raise ``NotFound`` or ``InvalidArgument`` in words for people when there are none.
        """

    async def plan(self, job: Job) -> Plan | None:
        """Return what is to be done; None when nothing is.

        ``Unavailable`` is tried again later; any other error of ours is final.
        """

    async def publish(self, job: Job, plan: Plan, result: Mapping[str, Any]) -> None:
        """Make known what a run of the plan made, which was this worker's job a moment ago.

        It may not be any more: what others must not undo is put in place by compare-and-swap. May be called
        again for a job whose completion was not noted.
        """
