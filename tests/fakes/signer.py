"""A signer whose signatures tell what was signed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.ports import Signatures


class FakeSigner:
    """Keeps what it was asked for; its signatures expire with the window, or when its session does."""

    def __init__(self, session_ends_at: datetime | None = None, *, drop: int = 0) -> None:
        self.calls: list[tuple[Location, tuple[str, ...], Window]] = []
        self._session_ends_at = session_ends_at
        self._drop = drop

    async def sign(self, table: Location, paths: Sequence[str], window: Window) -> Signatures:
        self.calls.append((table, tuple(paths), window))
        signatures = [f"signed-{number}" for number in range(len(paths) - self._drop)]
        return Signatures(
            origin=f"https://store.example/{table.path}/",
            query="sp=r&sig=",
            signatures=signatures,
            expires_at=min(window.expires_at, self._session_ends_at or window.expires_at),
        )
