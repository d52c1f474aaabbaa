"""Keeps a value that expires, and gets the next one before it does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, Protocol, TypeVar

from gateway.errors import Unavailable
from gateway.ports import Clock

# A clock that was set back by more than this has outlived what it was asked for.
_STEP: Final = timedelta(minutes=1)
_PAUSE: Final = timedelta(seconds=30)

log = logging.getLogger(__name__)


class Expiring(Protocol):
    @property
    def expires_at(self) -> datetime: ...


Value = TypeVar("Value", bound=Expiring)


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Value]):
    value: Value
    fetched_at: datetime
    # The life that it was fetched for: the provider was asked for that much and may have given less.
    life: timedelta


class Renewed(Generic[Value]):
    """One fetch at a time, however many ask; failures are not kept."""

    def __init__(
        self, fetch: Callable[[timedelta], Awaitable[Value]], *, ahead: timedelta, clock: Clock
    ) -> None:
        self._fetch = fetch
        self._ahead = ahead
        self._clock = clock
        self._lock = asyncio.Lock()
        self._kept: _Kept[Value] | None = None
        self._paused_until: datetime | None = None
        self._generation = 0

    async def get(self, life: timedelta) -> Value:
        """Return a value that lives that long from now, or as long as the provider gives."""
        async with self._lock:
            now = self._clock()
            kept = self._kept
            if kept is None or not self._serves(kept, life, now):
                return await self._renew(life)
            if self._is_due(kept, life, now):
                try:
                    return await self._renew(life)
                except Unavailable as exc:
                    # What we have is still good, and the provider is left alone for a while.
                    self._paused_until = now + (exc.retry_after or _PAUSE)
                    log.warning("renewal failed and is tried again later: %s", exc.message)
            return kept.value

    def forget(self) -> None:
        """Drop the value: whoever asks next gets a new one."""
        self._kept = None
        self._generation += 1

    def _serves(self, kept: _Kept[Value], life: timedelta, now: datetime) -> bool:
        if now >= kept.value.expires_at or now < kept.fetched_at - _STEP:
            return False
        # A provider that gives less than asked gives no more when asked again at once.
        short = kept.value.expires_at < kept.fetched_at + life <= kept.fetched_at + kept.life
        return now + life <= kept.value.expires_at or (short and now < self._middle(kept))

    def _is_due(self, kept: _Kept[Value], life: timedelta, now: datetime) -> bool:
        if now < self._middle(kept) or (self._paused_until is not None and now < self._paused_until):
            return False
        return now + life + self._ahead > kept.value.expires_at

    def _middle(self, kept: _Kept[Value]) -> datetime:
        return kept.fetched_at + (kept.value.expires_at - kept.fetched_at) / 2

    async def _renew(self, life: timedelta) -> Value:
        generation = self._generation
        value = await self._fetch(life)
        # What was asked for before it was to be forgotten may be what was to be forgotten.
        if generation == self._generation:
            self._kept = _Kept(value, self._clock(), life)
        self._paused_until = None
        return value
