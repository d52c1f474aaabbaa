"""What views show at present, and what is asked for where that is nothing, or too old."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway.domain.job import Job, JobState
from gateway.domain.manifest import ManifestError, decode_manifest, manifest_key
from gateway.domain.view import Materialisation, Showing
from gateway.domain.view_job import view_job_key, view_job_parameters
from gateway.domain.window import EPOCH
from gateway.errors import GatewayError, Unavailable
from gateway.ports import Clock, Jobs, StateStore

# For so long is not looked again: a request need not wait for the store that tells.
REMEMBERED: Final = timedelta(seconds=2)
# For so long what was found last is shown where the store does not answer. Directories are kept for longer.
LAST_RESORT: Final = timedelta(minutes=5)
# How long after a failure it is not tried again, and what a client is told to wait.
PATIENCE: Final = timedelta(minutes=1)
# What a client is told to wait: about as long as a small view takes.
RETRY_AFTER: Final = timedelta(seconds=10)

# So much clocks differ: what says that it was made later than that from now says nothing of its age.
MOST_AHEAD: Final = timedelta(minutes=5)

VIEW_PENDING: Final = "VIEW_NOT_READY"
VIEW_FAILED: Final = "VIEW_FAILED"

_ASK_AGAIN: Final = timedelta(seconds=5)
_MOST_REMEMBERED: Final = 10_000
_UNDER_WAY: Final = frozenset({JobState.QUEUED, JobState.RUNNING})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    found: Materialisation | None
    at: datetime


class Showings:
    """Looks up manifests, one look for all who ask at the same moment, and asks for refreshes."""

    def __init__(self, state: StateStore, jobs: Jobs, clock: Clock) -> None:
        self._state = state
        self._jobs = jobs
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._looks: dict[str, asyncio.Task[Materialisation | None]] = {}
        self._asked: dict[str, datetime] = {}
        self._aside: set[asyncio.Task[None]] = set()

    async def find(self, showing: Showing) -> Materialisation | None:
        """Return what was made last; None where nothing was, and raise where that cannot be found out."""
        fingerprint, now = showing.fingerprint, self._clock()
        known = self._known.get(fingerprint)
        if known is not None and abs(now - known.at) < REMEMBERED:
            return known.found
        try:
            return await self._look(showing, fingerprint)
        except GatewayError:
            if known is not None and known.found is not None and abs(now - known.at) < LAST_RESORT:
                return known.found
            raise

    def is_fresh(self, showing: Showing, found: Materialisation | None) -> bool:
        return self.is_since(found, self.needed(showing))

    def is_since(self, found: Materialisation | None, needed: datetime) -> bool:
        """Tell whether what is shown was made then or later, as far as its own word can be taken for it."""
        return found is not None and needed <= found.refreshed_at <= self._clock() + MOST_AHEAD

    def needed(self, showing: Showing) -> datetime:
        """Return when what is shown must have been made at the earliest."""
        staleness = showing.view.max_staleness
        return EPOCH if staleness is None else self._clock() - staleness

    async def request(self, showing: Showing) -> Job:
        """Have a showing made, unless that is under way; return the job, which may have failed just now."""
        key, now = view_job_key(showing), self._clock()
        job = await self._jobs.find(key)
        if job is not None and (job.state in _UNDER_WAY or _has_just_failed(job, now)):
            return job
        # Since now: what was done before is shown already, or was not good enough.
        return await self._jobs.request(key, view_job_parameters(showing), now)

    def request_aside(self, showing: Showing) -> None:
        """Have a showing made, without anybody waiting for that to be asked."""
        fingerprint, now = showing.fingerprint, self._clock()
        asked = self._asked.get(fingerprint)
        if asked is not None and abs(now - asked) < _ASK_AGAIN:
            return
        if len(self._asked) >= _MOST_REMEMBERED:
            self._asked.clear()
        self._asked[fingerprint] = now
        task = asyncio.create_task(self._request_quietly(showing))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def find_or_tell(self, showing: Showing) -> Materialisation:
        """Return what is shown, if it is as old as can be; raise where nothing was made yet."""
        found = await self.find(showing)
        if found is None:
            raise unprepared(showing, await self.request(showing))
        if not self.is_fresh(showing, found):
            self.request_aside(showing)
        return found

    async def _look(self, showing: Showing, fingerprint: str) -> Materialisation | None:
        task = self._looks.get(fingerprint)
        if task is None:
            task = self._looks[fingerprint] = asyncio.create_task(self._read(showing, fingerprint))
            task.add_done_callback(self._forget(fingerprint))
        # Whoever leaves does not take the others' look with them.
        return await asyncio.shield(task)

    def _forget(self, fingerprint: str) -> Callable[[asyncio.Task[Materialisation | None]], None]:
        def forget(task: asyncio.Task[Materialisation | None]) -> None:
            self._looks.pop(fingerprint, None)
            # Whoever waited has been told; where all have left, nobody minds.
            if not task.cancelled():
                task.exception()

        return forget

    async def _read(self, showing: Showing, fingerprint: str) -> Materialisation | None:
        at = self._clock()
        entry = await self._state.get(manifest_key(fingerprint))
        found = None if entry is None else _decoded(entry.content, showing, at)
        self._known[fingerprint] = _Known(found=found, at=at)
        self._known.move_to_end(fingerprint)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return found

    async def _request_quietly(self, showing: Showing) -> None:
        try:
            await self.request(showing)
        except GatewayError as exc:
            log.warning("a refresh of the view %s cannot be asked for: %s", showing.name, exc.message)


def unprepared(showing: Showing, job: Job) -> Unavailable:
    """Return the answer where there is nothing to show, in words that tell nothing of how it is made."""
    if job.state is JobState.FAILED:
        words = f"view {showing.name} could not be prepared, please contact your share provider"
        return Unavailable(words, error_code=VIEW_FAILED, retry_after=PATIENCE)
    words = f"view {showing.name} is being prepared; try again later"
    return Unavailable(words, error_code=VIEW_PENDING, retry_after=RETRY_AFTER)


def _has_just_failed(job: Job, now: datetime) -> bool:
    return job.state is JobState.FAILED and job.finished_at is not None and now < job.finished_at + PATIENCE


def _decoded(content: bytes, showing: Showing, now: datetime) -> Materialisation | None:
    try:
        manifest = decode_manifest(content, showing)
        # Its directory may be going at this moment.
        return None if manifest.is_hidden(now) else manifest.materialisation(showing.view.root)
    except (ManifestError, GatewayError) as exc:
        # As if there were none: the next refresh puts one in its place.
        log.error("%s", exc)  # noqa: TRY400 -- what is kept there is not for the log
        return None
