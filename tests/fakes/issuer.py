"""An issuer that hands out one prepared credential."""

from __future__ import annotations

from gateway.domain.credential import Credential
from gateway.domain.grant import Grant
from gateway.domain.location import Location


class FakeIssuer:
    """Keeps what it was asked for."""

    def __init__(self, credential: Credential) -> None:
        self.calls: list[tuple[Grant, Location]] = []
        self._credential = credential

    async def issue(self, grant: Grant, location: Location) -> Credential:
        self.calls.append((grant, location))
        return self._credential
