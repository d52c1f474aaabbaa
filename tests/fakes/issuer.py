"""An issuer that hands out one prepared credential."""

from __future__ import annotations

from gateway.domain.credential import Credential
from gateway.domain.scope import Scope


class FakeIssuer:
    """Keeps what it was asked for."""

    def __init__(self, credential: Credential, *, names_recipients: bool = True) -> None:
        self.calls: list[Scope] = []
        self.names_recipients = names_recipients
        self._credential = credential

    async def issue(self, scope: Scope) -> Credential:
        self.calls.append(scope)
        return self._credential
