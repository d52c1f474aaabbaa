"""Snapshots that are kept for the next request, as many as fit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from gateway.services.snapshot.snapshot import Snapshot


class KeptSnapshots:
    """Bounded by bytes; those that were used longest ago go first."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        # With the bytes that each takes, which are not free to find out.
        self._snapshots: OrderedDict[Hashable, tuple[Snapshot, int]] = OrderedDict()
        self._used = 0

    def find(self, key: Hashable) -> Snapshot | None:
        kept = self._snapshots.get(key)
        if kept is None:
            return None
        self._snapshots.move_to_end(key)
        return kept[0]

    def keep(self, key: Hashable, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the one before it; one that can never fit is not kept."""
        self.drop(key)
        size = snapshot.memory
        if size > self._memory:
            return
        self._snapshots[key] = snapshot, size
        self._used += size
        while self._used > self._memory:
            self.drop(next(iter(self._snapshots)))

    def drop(self, key: Hashable) -> None:
        _, size = self._snapshots.pop(key, (None, 0))
        self._used -= size
