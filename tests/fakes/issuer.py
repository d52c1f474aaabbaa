"""An issuer that hands out one prepared credential."""

from __future__ import annotations

from gateway.domain.credential import Credential
from gateway.domain.scope import Scope


class FakeIssuer:
    """Keeps what it was asked for; raises ``error`` instead of an answer where there is one."""

    def __init__(
        self, credential: Credential, *, names_recipients: bool = True, error: Exception | None = None
    ) -> None:
        self.calls: list[Scope] = []
        self.names_recipients = names_recipients
        self._credential = credential
        self._error = error

    async def issue(self, scope: Scope) -> Credential:
        self.calls.append(scope)
        if self._error is not None:
            raise self._error
        return self._credential
