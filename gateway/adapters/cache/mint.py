"""Asks a provider for a credential, once, and judges what comes back."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from gateway.adapters.cache.line import is_short, left
from gateway.adapters.cache.provider import Provider
from gateway.adapters.cache.replicas import Minted
from gateway.adapters.cache.rhythm import Rhythm
from gateway.adapters.credential_metrics import Outcome
from gateway.domain.credential import Credential
from gateway.domain.scope import Scope
from gateway.errors import Unavailable
from gateway.ports import Clock, CredentialIssuer

log = logging.getLogger(__name__)


class Mint:
    """The issuer of one storage. Leaves it alone when it has asked for that."""

    def __init__(self, issuer: CredentialIssuer, provider: Provider, *, storage: str, clock: Clock) -> None:
        self.backoff = provider.backoff
        self._issuer = issuer
        self._provider = provider
        self._storage = storage
        self._clock = clock
        self._has_warned = False

    async def issue(self, scope: Scope, rhythm: Rhythm) -> Minted[Credential]:
        """Return a fresh credential, and for how long it may be kept."""
        credential, outcome = await self._provider.ask(
            lambda: self._issuer.issue(scope), lambda given: self._judge(given, rhythm, self._clock())
        )
        if outcome is Outcome.EXPIRED:
            raise Unavailable("the storage's credential has expired already; try again later")
        if outcome is Outcome.SHORT:
            return Minted(credential, None)
        # For as long as anybody might be handed it; no longer than was asked, whatever the provider says.
        life = min(left(credential, self._clock()) - rhythm.stale_least, scope.life)
        return Minted(credential, life)

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
                self._storage,
                left(credential, now) / timedelta(minutes=1),
            )
        return Outcome.SHORT
