"""Asks a provider for a credential, once, and judges what comes back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from gateway.adapters.cache.backoff import Backoff
from gateway.adapters.cache.line import is_short, left
from gateway.adapters.cache.replicas import Minted
from gateway.adapters.cache.rhythm import Rhythm
from gateway.adapters.credential_metrics import Outcome, StorageSeries
from gateway.domain.credential import Credential
from gateway.domain.scope import Scope
from gateway.errors import GatewayError, Unavailable
from gateway.ports import Clock, CredentialIssuer

# A provider that takes longer holds up everybody who asks for the same.
_LONGEST: Final = timedelta(seconds=30)

log = logging.getLogger(__name__)


class Mint:
    """The issuer of one storage. Leaves it alone when it has asked for that."""

    def __init__(
        self,
        issuer: CredentialIssuer,
        *,
        series: StorageSeries,
        backoff: Backoff,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        longest: timedelta = _LONGEST,
    ) -> None:
        self.backoff = backoff
        self._issuer = issuer
        self._series = series
        self._clock = clock
        self._monotonic = monotonic
        self._longest = longest.total_seconds()
        self._has_warned = False

    async def issue(self, scope: Scope, rhythm: Rhythm) -> Minted:
        """Return a fresh credential, and for how long it may be kept."""
        wait = self.backoff.wait
        if wait is not None:
            raise _throttled(wait)
        began = self._monotonic()
        outcome = Outcome.FAILED
        begun = self.backoff.begin()
        try:
            credential = await self._ask(scope)
            self.backoff.succeed(begun)
            outcome = self._judge(credential, rhythm, self._clock())
        except Unavailable as exc:
            outcome = Outcome.UNAVAILABLE
            if exc.retry_after is not None:
                outcome = Outcome.THROTTLED
                self.backoff.refuse(exc.retry_after)
            raise
        except GatewayError:
            outcome = Outcome.REFUSED
            raise
        finally:
            self.backoff.end()
            self._series.count_mint(outcome, self._monotonic() - began)
        return self._minted(credential, outcome, scope, rhythm)

    async def _ask(self, scope: Scope) -> Credential:
        try:
            async with asyncio.timeout(self._longest):
                return await self._issuer.issue(scope)
        except TimeoutError:
            raise Unavailable("the storage does not issue a credential in time; try again later") from None

    def _judge(self, credential: Credential, rhythm: Rhythm, now: datetime) -> Outcome:
        if credential.expires_at <= now:
            return Outcome.EXPIRED
        if not is_short(credential, rhythm, now):
            return Outcome.MINTED
        if not self._has_warned:
            # Once: it is so for every credential of the storage, and the metric counts them.
            self._has_warned = True
            log.warning(
                "the storage %s gives credentials for %d minutes only, too short a time to keep them: each "
                "request asks for its own; see the limits of its identity and role",
                self._series.name,
                left(credential, now) / timedelta(minutes=1),
            )
        return Outcome.SHORT

    def _minted(self, credential: Credential, outcome: Outcome, scope: Scope, rhythm: Rhythm) -> Minted:
        if outcome is Outcome.EXPIRED:
            raise Unavailable("the storage's credential has expired already; try again later")
        if outcome is Outcome.SHORT:
            return Minted(credential, None)
        # For as long as anybody might be handed it; no longer than was asked, whatever the provider says.
        life = min(left(credential, self._clock()) - rhythm.stale_least, scope.life)
        return Minted(credential, life)


def _throttled(wait: timedelta) -> Unavailable:
    return Unavailable("the storage is asked for too many credentials; try again later", retry_after=wait)
