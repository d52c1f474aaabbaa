"""A credential that is renewed before it expires, once for all who wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from sluice_recipient.credential import Credential
from sluice_recipient.errors import RecipientError, Unavailable

# Engines look at the expiration themselves and want to find some minutes left.
AHEAD: Final = timedelta(minutes=15)
# Between two tries while the old credential still opens.
PAUSE: Final = timedelta(seconds=10)


def utcnow() -> datetime:
    return datetime.now(UTC)


class RefreshingCredential:
    """Hands out one credential and asks ``fetch`` for the next when it comes to its end."""

    def __init__(self, fetch: Callable[[], Credential], clock: Callable[[], datetime] = utcnow) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: Credential | None = None
        self._renew_at = datetime.min.replace(tzinfo=UTC)

    def current(self) -> Credential:
        """Return a credential that is valid now."""
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

    def _renewed(self) -> Credential:
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

    def _keep(self, fresh: Credential) -> Credential:
        now = self._clock()
        if fresh.expires_at <= now:
            raise Unavailable(
                "the gateway gave a credential that has expired; is this machine's clock right?"
            )
        self._renew_at = max(fresh.expires_at - AHEAD, now + (fresh.expires_at - now) / 2)
        self._kept = fresh
        return fresh
