"""Keeps a value that expires, and gets the next one before it does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, Protocol, TypeVar

from gateway.errors import Unavailable
from gateway.ports import Clock

# A clock that was set back by more than this does not tell what has expired.
_STEP: Final = timedelta(minutes=1)
_PAUSE: Final = timedelta(seconds=30)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)

log = logging.getLogger(__name__)


class Expiring(Protocol):
    @property
    def expires_at(self) -> datetime | None:
        """Return the end; a value without one is given to those who wait for it, and not kept."""


Value = TypeVar("Value", bound=Expiring)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept(Generic[Value]):
    value: Value
    fetched_at: datetime
    expires_at: datetime
    # What the provider was asked for: it may have given less.
    asked: timedelta

    def limit(self, life: timedelta) -> datetime:
        """Return until when the value does for such a life."""
        given = self.expires_at - self.fetched_at
        if life <= given:
            return self.expires_at - life
        # A provider that gives less than asked gives no more when asked again at once.
        return self.fetched_at + given / 2 if life <= self.asked else _NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pause:
    failed_at: datetime
    span: timedelta


class Renewed(Generic[Value]):
    """One fetch at a time, however many ask; failures are not kept.

    A value that is due is renewed in the background, ``ahead`` of when it would no longer do. One that is
    too short for whoever asks is waited for, and the old one used when that fails, as long as more than the
    ``least`` is left of it.
    """

    def __init__(
        self,
        fetch: Callable[[timedelta], Awaitable[Value]],
        *,
        ahead: timedelta,
        least: timedelta,
        clock: Clock,
    ) -> None:
        self._fetch = fetch
        self._ahead = ahead
        self._least = least
        self._clock = clock
        self._kept: _Kept[Value] | None = None
        self._task: asyncio.Task[Value] | None = None
        self._pause: _Pause | None = None
        # The longest life so far: shorter ones are served by the same value.
        self._asked = timedelta()
        self._generation = 0

    async def get(self, life: timedelta) -> Value:
        """Return a value that lives that long from now, or as long as the provider gives."""
        now = self._clock()
        kept = self._usable(now)
        # A provider that has just failed is left alone for a while.
        if kept is not None and self._is_paused(now):
            return kept.value
        if kept is None or now > kept.limit(life):
            return await self._awaited(life)
        if now >= self._due(kept, life):
            self._renewing(life)
        return kept.value

    def forget(self) -> None:
        """Drop the value: whoever asks next gets a new one."""
        self._kept = None
        self._task = None
        self._pause = None
        self._generation += 1

    async def _awaited(self, life: timedelta) -> Value:
        generation = self._generation
        try:
            # Whoever gives up waiting leaves the fetch to the others.
            value = await asyncio.shield(self._renewing(life))
        except Unavailable:
            kept = self._usable(self._clock())
            if kept is None:
                raise
            return kept.value
        # What was asked for before it was to be forgotten may be what was to be forgotten.
        return value if generation == self._generation else await self.get(life)

    def _usable(self, now: datetime) -> _Kept[Value] | None:
        kept = self._kept
        if kept is None or now < kept.fetched_at - _STEP:
            return None
        return kept if now < kept.expires_at - self._least else None

    def _due(self, kept: _Kept[Value], life: timedelta) -> datetime:
        limit = kept.limit(life)
        # Never in the first half of its time: what is given for a short while is not asked for all the time.
        return max(limit - self._ahead, kept.fetched_at + (limit - kept.fetched_at) / 2)

    def _is_paused(self, now: datetime) -> bool:
        pause = self._pause
        return pause is not None and pause.failed_at <= now < pause.failed_at + pause.span

    def _renewing(self, life: timedelta) -> asyncio.Task[Value]:
        """Return the fetch that is under way, or a new one where that would be too short."""
        if self._task is None or life > self._asked:
            self._asked = max(life, self._asked)
            self._task = asyncio.create_task(self._renew(self._asked, self._generation))
            self._task.add_done_callback(self._finish)
        return self._task

    async def _renew(self, asked: timedelta, generation: int) -> Value:
        value = await self._fetch(asked)
        now, expires_at = self._clock(), value.expires_at
        if expires_at is None:
            return value
        if expires_at <= now:
            log.error("what a storage's provider gave has expired already: compare the clocks")
            raise Unavailable("the storage's provider gave nothing that is still valid; try again later")
        if generation == self._generation and (self._kept is None or self._kept.asked <= asked):
            self._kept = _Kept(value=value, fetched_at=now, expires_at=expires_at, asked=asked)
        return value

    def _finish(self, task: asyncio.Task[Value]) -> None:
        # Asked for in any case, as perhaps nobody waits for the task.
        exc = None if task.cancelled() else task.exception()
        if task is not self._task:
            return
        self._task = None
        self._pause = None
        if isinstance(exc, Unavailable):
            self._fail(exc.retry_after or _PAUSE, exc.message)
        elif exc is not None:
            # Words that are not our own may hold a secret.
            self._fail(_PAUSE, type(exc).__name__)

    def _fail(self, span: timedelta, reason: str) -> None:
        self._pause = _Pause(failed_at=self._clock(), span=span)
        if self._kept is not None:
            log.warning("a renewal failed and is tried again later: %s", reason)
