"""A signer whose signatures tell what was signed."""

from __future__ import annotations

from datetime import datetime

from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.ports import Signatures, SigningCost


class FakeSigner:
    """Keeps what it was asked for; its signatures expire with the window, or when its session does."""

    def __init__(
        self,
        session_ends_at: datetime | None = None,
        *,
        drop: int = 0,
        cost: SigningCost = SigningCost.HASH,
        has_sessions: bool = False,
    ) -> None:
        self.cost = cost
        self.has_sessions = has_sessions
        self.calls: list[tuple[Location, Paths, Window]] = []
        self._session_ends_at = session_ends_at
        self._drop = drop

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        self.calls.append((table, paths, window))
        signatures = [f"signed-{number}" for number in range(len(paths) - self._drop)]
        return Signatures(
            origin=f"https://store.example/{table.path}/",
            query="sp=r&sig=",
            signatures="\n".join(signatures).encode(),
            expires_at=min(window.expires_at, self._session_ends_at or window.expires_at),
        )
