"""Snapshots that are kept for the next request, as many as fit."""

from __future__ import annotations

from collections.abc import Hashable

from gateway.domain.kept import Kept
from gateway.services.snapshot.state.snapshot import Snapshot


class KeptSnapshots:
    """Bounded by the memory that the snapshots take."""

    def __init__(self, memory: int) -> None:
        self._kept: Kept[Hashable, Snapshot] = Kept(memory)

    def find(self, key: Hashable) -> Snapshot | None:
        return self._kept.find(key)

    def keep(self, key: Hashable, snapshot: Snapshot) -> None:
        self._kept.keep(key, snapshot, snapshot.memory)
