"""Snapshots that are kept for the next request, as many as fit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from gateway.services.snapshot.snapshot import Snapshot


class KeptSnapshots:
    """Bounded by bytes; those that were used longest ago go first."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._snapshots: OrderedDict[Hashable, Snapshot] = OrderedDict()
        self._used = 0

    def find(self, key: Hashable) -> Snapshot | None:
        snapshot = self._snapshots.get(key)
        if snapshot is not None:
            self._snapshots.move_to_end(key)
        return snapshot

    def keep(self, key: Hashable, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the one before it; one that can never fit is not kept."""
        self.drop(key)
        if snapshot.memory > self._memory:
            return
        self._snapshots[key] = snapshot
        self._used += snapshot.memory
        while self._used > self._memory:
            self.drop(next(iter(self._snapshots)))

    def drop(self, key: Hashable) -> None:
        snapshot = self._snapshots.pop(key, None)
        if snapshot is not None:
            self._used -= snapshot.memory
