"""A storage's issuer and probe, used with patience that ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from gateway.domain.credential import Credential
from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt, Verdict
from gateway.domain.scope import Scope
from gateway.errors import Unavailable
from gateway.ports import CredentialIssuer, Probe, Storage

RECIPIENT: Final = "sluice-verify-storage"
_PATIENCE: Final = timedelta(seconds=60)


class Hands:
    """Acts in a store as whoever holds a credential, or as the storage's own identity."""

    def __init__(self, storage: Storage, issuer: CredentialIssuer, probe: Probe) -> None:
        self._storage = storage
        self._issuer = issuer
        self._probe = probe

    async def issue(self, location: Location) -> Credential:
        scope = Scope(
            location=location,
            recipient=RECIPIENT if self._issuer.names_recipients else "",
            life=self._storage.credential_life,
        )
        try:
            async with asyncio.timeout(_PATIENCE.total_seconds()):
                return await self._issuer.issue(scope)
        except TimeoutError:
            raise Unavailable(
                f"no credential within {_PATIENCE.total_seconds():.0f} s; is the endpoint reachable?"
            ) from None

    async def attempt(
        self, credential: Credential | None, action: Action, at: Location, path: str
    ) -> Attempt:
        try:
            async with asyncio.timeout(_PATIENCE.total_seconds()):
                return await self._probe.attempt(credential, action, at, path)
        except TimeoutError:
            return Attempt(verdict=Verdict.FAILED, detail="no answer")
