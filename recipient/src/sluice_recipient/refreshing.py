"""What expires and is renewed before that, once for all who wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, Protocol, TypeVar

from sluice_recipient.errors import RecipientError, Unavailable

# Engines look at the expiration themselves and want to find some minutes left.
AHEAD: Final = timedelta(minutes=15)
# Between two tries while the old one still opens.
PAUSE: Final = timedelta(seconds=10)


class Expiring(Protocol):
    """A credential, or URLs."""

    @property
    def expires_at(self) -> datetime: ...


T = TypeVar("T", bound=Expiring)


def utcnow() -> datetime:
    return datetime.now(UTC)


class Refreshing(Generic[T]):
    """Hands out one thing, the ``first`` to begin with, and asks ``fetch`` for the next at its end."""

    def __init__(
        self, fetch: Callable[[], T], clock: Callable[[], datetime] = utcnow, *, first: T | None = None
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: T | None = None
        self._renew_at = datetime.min.replace(tzinfo=UTC)
        if first is not None:
            self._keep(first)

    def current(self) -> T:
        """Return what is valid now."""
        kept = self._kept
        if kept is not None and self._clock() < self._renew_at:
            return kept
        if kept is None or kept.expires_at <= self._clock():
            with self._lock:
                return self._renewed()
        # While one caller renews it, the others go on with the old one for as long as it opens.
        if not self._lock.acquire(blocking=False):
            return kept
        try:
            return self._renewed()
        finally:
            self._lock.release()

    def instead_of(self, refused: T) -> T:
        """Return what came after one that was refused before its time, whoever noticed it first."""
        with self._lock:
            if self._kept is not None and self._kept is not refused:
                return self._kept
            return self._keep(self._fetch())

    def _renewed(self) -> T:
        kept = self._kept
        if kept is not None and self._clock() < self._renew_at:
            return kept
        try:
            fresh = self._fetch()
        except RecipientError:
            if kept is None or kept.expires_at <= self._clock():
                raise
            self._renew_at = self._clock() + PAUSE
            return kept
        return self._keep(fresh)

    def _keep(self, fresh: T) -> T:
        now = self._clock()
        if fresh.expires_at <= now:
            raise Unavailable("what the gateway gave has expired already; is this machine's clock right?")
        self._renew_at = max(fresh.expires_at - AHEAD, now + (fresh.expires_at - now) / 2)
        self._kept = fresh
        return fresh
