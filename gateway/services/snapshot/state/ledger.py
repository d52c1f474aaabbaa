"""What snapshots take together, where some of them share their rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from gateway.services.snapshot.state.snapshot import Snapshot


class Ledger:
    """Charges rows that snapshots have in common once, by the one that has the most."""

    def __init__(self) -> None:
        self.size = 0
        self._groups: dict[Hashable, dict[Hashable, Snapshot]] = {}
        self._charged: dict[Hashable, int] = {}

    def add(self, key: Hashable, snapshot: Snapshot) -> None:
        group = _group(key, snapshot)
        self._groups.setdefault(group, {})[key] = snapshot
        self._charge(group)

    def remove(self, key: Hashable, snapshot: Snapshot) -> None:
        group = _group(key, snapshot)
        del self._groups[group][key]
        self._charge(group)

    def measure(self, key: Hashable, snapshot: Snapshot) -> None:
        """Charge for what a snapshot has come to hold since: columns that a query asked for."""
        self._charge(_group(key, snapshot))

    def _charge(self, group: Hashable) -> None:
        size = _size(self._groups[group].values())
        self.size += size - self._charged.pop(group, 0)
        if size:
            self._charged[group] = size
        else:
            del self._groups[group]


def _group(key: Hashable, snapshot: Snapshot) -> Hashable:
    return snapshot.files.stock or key


def _size(snapshots: Iterable[Snapshot]) -> int:
    members = tuple(snapshots)
    rows = max((member.files.memory for member in members), default=0)
    return rows + sum(member.bare_memory for member in members)
