"""Asks for what the configuration wants done again and again, whenever it is due."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from gateway.domain.job import Job, JobKey, JobKind
from gateway.errors import Unavailable
from gateway.ports import Clock, Jobs
from gateway.work.craft import Craft, Scheduled

log = logging.getLogger(__name__)


class Schedule:
    """Every worker has one, and all ask for the same: a request joins what another has asked for.

    It is remembered when each job is due next, so that the state is asked about each once a period only.
    """

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._due_at: dict[JobKey, datetime] = {}

    async def ask_for_due(self, crafts: Mapping[JobKind, Craft]) -> None:
        """Ask for each job that is due; one that cannot be asked for now is due still."""
        scheduled = [one for craft in crafts.values() for one in craft.scheduled()]
        self._forget_others(scheduled)
        for one in scheduled:
            now = self._clock()
            if now < self._due_at.get(one.wanted.key, now):
                continue
            # What began exactly then is due.
            since = now - one.every + timedelta(microseconds=1)
            try:
                job = await self._jobs.request(one.wanted.key, one.wanted.parameters, since)
            except Unavailable as exc:
                log.warning("what is due could not be asked for: %s", exc.message)
                return
            self._due_at[one.wanted.key] = _counted_from(job, since, now) + one.every

    def _forget_others(self, scheduled: Iterable[Scheduled]) -> None:
        keys = {one.wanted.key for one in scheduled}
        self._due_at = {key: due_at for key, due_at in self._due_at.items() if key in keys}


def _counted_from(job: Job, since: datetime, now: datetime) -> datetime:
    """Return what the next time counts from: now for what waits, or was only asked for again."""
    return job.started_at if job.started_at is not None and job.started_at >= since else now
