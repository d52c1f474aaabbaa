"""Grants that were signed a moment ago, handed out again: signing and verifying are what a request costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from gateway.domain.grant import MAX_LIFE, Audience, Grant
from gateway.domain.table import Table
from gateway.ports import Clock
from gateway.services.catalog.callers import Asker
from gateway.services.catalog.grant_signer import GrantSigner

# A request that begins with a grant must be able to end with it.
LEAST_LEFT: Final = timedelta(seconds=40)
_MAX_KEPT: Final = 8192

_Key = tuple[str, datetime | None, str, Table, str, Audience]


@dataclass(frozen=True, slots=True)
class SignedGrant:
    token: str = field(repr=False)
    expires_at: datetime


class GrantCache:
    """Makes grants, one for all who ask for the same within a few seconds."""

    def __init__(self, signer: GrantSigner, clock: Clock, *, capacity: int = _MAX_KEPT) -> None:
        self._signer = signer
        self._clock = clock
        # How many grants are cached.
        self._capacity = capacity
        self._signed: dict[_Key, SignedGrant] = {}

    def find_or_sign(self, asker: Asker, table: Table, generation: str, audience: Audience) -> SignedGrant:
        """Return a grant with at least ``LEAST_LEFT`` of its life before it."""
        # The table itself: a grant never outlives a change of what it says, whatever the generation.
        principal = asker.principal
        key = (principal.name, principal.revoked_at, asker.actor, table, generation, audience)
        now = self._clock()
        signed = self._signed.get(key)
        if signed is None or not LEAST_LEFT <= signed.expires_at - now <= MAX_LIFE:
            signed = self._sign(key, now)
            self._keep(key, signed)
        return signed

    def _sign(self, key: _Key, now: datetime) -> SignedGrant:
        principal, revoked_at, actor, table, generation, audience = key
        grant = Grant(
            principal=principal,
            actor=actor,
            audience=audience,
            table=table.name,
            table_id=table.id,
            location=table.location,
            auxiliary_locations=table.auxiliary_locations,
            access_modes=table.access_modes,
            history_shared=table.history_shared,
            start_version=table.start_version,
            holds_shown_only=table.holds_shown_only,
            freshness=table.freshness,
            revoked_at=revoked_at,
            generation=generation,
            # A JWT's times are whole seconds, and its life is counted in them.
            expires_at=now.replace(microsecond=0) + MAX_LIFE,
        )
        return SignedGrant(self._signer.sign(grant), grant.expires_at)

    def _keep(self, key: _Key, signed: SignedGrant) -> None:
        self._signed.pop(key, None)
        if len(self._signed) >= self._capacity:
            del self._signed[next(iter(self._signed))]
        self._signed[key] = signed
