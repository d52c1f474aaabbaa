"""Sessions that are minted once for a window, as all replicas together do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateway.domain.credential import Credential
from gateway.domain.window import Window


class FakeSessions:
    """Keeps what was minted, for a test to look at."""

    def __init__(self) -> None:
        self.minted: dict[Window, Credential] = {}

    async def obtain(self, window: Window, mint: Callable[[], Awaitable[Credential]]) -> Credential:
        if window not in self.minted:
            self.minted[window] = await mint()
        return self.minted[window]
