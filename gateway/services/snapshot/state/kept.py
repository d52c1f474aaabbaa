"""Snapshots that are kept for the next request, as many as fit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway.domain.location import Location
from gateway.ports import Clock, LogFile, SnapshotMetrics
from gateway.services.snapshot.index.shelf import Index
from gateway.services.snapshot.log.listing import LogListing
from gateway.services.snapshot.state.ledger import Ledger
from gateway.services.snapshot.state.snapshot import Snapshot

# A table is hot when it was asked for again, and as long as it is.
_HOT: Final = timedelta(minutes=10)
# Of one table, beside the latest: whoever reads all of its history does not need all of the memory.
_MAX_VERSIONS: Final = 16
_SMALL: Final = 1024 * 1024

# A table's version; None for the latest.
Key = tuple[Location, int | None]


@dataclass(slots=True)
class Held:
    """A snapshot and how it has been used."""

    snapshot: Snapshot
    # When a listing began that had nothing newer.
    checked_at: datetime
    asked_at: datetime
    asks: int = 1


class KeptSnapshots:
    """Bounded by bytes. What is cold makes room first, which any version but the latest is.

    Columns that queries have had made go before snapshots that were asked for lately, whoever's they are.
    """

    def __init__(self, *, memory: int, clock: Clock, metrics: SnapshotMetrics) -> None:
        self._memory = memory
        self._clock = clock
        self._metrics = metrics
        # What was asked for longest ago is first.
        self._held: OrderedDict[Key, Held] = OrderedDict()
        self._versions: dict[Location, list[int]] = {}
        self._ledger = Ledger()
        # Whether only snapshots are found that hold all of their files.
        self._is_by_log = False

    def without_indexes(self) -> KeptSnapshots:
        """Return the same snapshots, but for those that are known by an index: these are not found."""
        other = copy(self)
        other._is_by_log = True  # noqa: SLF001
        return other

    def ask(self, location: Location) -> Held | None:
        """Return the latest snapshot that is known of a table, for one more request."""
        held = self._ask((location, None))
        if held is not None:
            # Queries have it hold more than it did: what it takes by now counts.
            self._make_room((location, None))
        return held

    def peek(self, location: Location) -> Held | None:
        return self._get((location, None))

    def find(self, location: Location, version: int, anchor: LogFile | None) -> Snapshot | None:
        """Return a version by number, if it is the one that the log has."""
        for key in ((location, version), (location, None)):
            held = self._get(key)
            if held is not None and (held.snapshot.version, held.snapshot.anchor) == (version, anchor):
                self._ask(key)
                return held.snapshot
        return None

    def nearest(self, location: Location, version: int, listing: LogListing) -> Snapshot | None:
        """Return the newest snapshot before a version, of the table that the log is of."""
        known = (held.snapshot for held in self._of(location) if held.snapshot.version < version)
        of_log = (snapshot for snapshot in known if listing.find_anchor(snapshot.version) == snapshot.anchor)
        return max(of_log, key=lambda snapshot: snapshot.version, default=None)

    def measure(self, location: Location, snapshot: Snapshot) -> None:
        """Count what a snapshot has come to hold by now, and make room for it."""
        for key in ((location, None), (location, snapshot.version)):
            held = self._held.get(key)
            if held is not None and held.snapshot is snapshot:
                self._ledger.measure(key, snapshot)
                self._make_room(key)

    def keep_latest(self, location: Location, snapshot: Snapshot, checked_at: datetime) -> None:
        """Keep a snapshot in place of the one before it, unless that is by a later look at the log."""
        before = self.peek(location)
        if before is not None and before.checked_at > checked_at:
            return
        self._drop((location, None))
        asks = before.asks if before is not None else 1
        self._keep((location, None), Held(snapshot, checked_at, self._clock(), asks))
        if before is not None:
            self._keep_superseded(location, before, snapshot)

    def forget_index(self, location: Location, index: Index) -> None:
        """Forget all versions that are known by an index."""
        for version in (None, *self._versions.get(location, ())):
            held = self._held.get((location, version))
            indexed = None if held is None else held.snapshot.indexed
            if indexed is not None and indexed.index is index:
                self._drop((location, version))

    def keep_version(self, location: Location, snapshot: Snapshot) -> None:
        now = self._clock()
        self._keep((location, snapshot.version), Held(snapshot, now, now))

    def _keep_superseded(self, location: Location, before: Held, after: Snapshot) -> None:
        # Who reads it page by page comes back for it, and it takes next to nothing beside the newer one.
        stock = before.snapshot.files.stock
        is_shared = stock is not None and stock is after.files.stock
        is_cheap = is_shared or before.snapshot.memory <= _SMALL
        if is_cheap and before.snapshot.version < after.version:
            self._keep((location, before.snapshot.version), before)

    def _keep(self, key: Key, held: Held) -> None:
        self._drop(key)
        if held.snapshot.memory > self._memory:
            held.snapshot.files.columns.clear()
        if held.snapshot.memory <= self._memory:
            self._held[key] = held
            self._ledger.add(key, held.snapshot)
            self._note_version(key)
        self._make_room(key)

    def _note_version(self, key: Key) -> None:
        location, version = key
        if version is not None:
            versions = self._versions.setdefault(location, [])
            versions.append(version)
            if len(versions) > _MAX_VERSIONS:
                self._drop((location, versions[0]))

    def _get(self, key: Key) -> Held | None:
        held = self._held.get(key)
        is_hidden = held is not None and self._is_by_log and held.snapshot.indexed is not None
        return None if is_hidden else held

    def _ask(self, key: Key) -> Held | None:
        held = self._get(key)
        if held is not None:
            self._held.move_to_end(key)
            held.asks += 1
            held.asked_at = self._clock()
            self._ledger.measure(key, held.snapshot)
        return held

    def _make_room(self, newcomer: Key) -> None:
        self._drop_unused(newcomer)
        self._clear_columns()
        while self._ledger.size > self._memory:
            self._drop(self._find_victim(newcomer))
        self._metrics.set_memory(len(self._held), self._ledger.size)

    def _drop_unused(self, newcomer: Key) -> None:
        """Drop what nobody has asked for in a while, as long as there is too little room."""
        while self._ledger.size > self._memory:
            oldest = next(iter(self._held))
            if oldest == newcomer or not self._is_unused(oldest):
                return
            self._drop(oldest)

    def _clear_columns(self) -> None:
        """Forget what can be made anew from rows at hand, before any rows that were asked for lately."""
        for key, held in self._held.items():
            if self._ledger.size <= self._memory:
                return
            columns = held.snapshot.files.columns
            if columns.memory or columns.order_memory:
                columns.clear()
                self._ledger.measure(key, held.snapshot)

    def _find_victim(self, newcomer: Key) -> Key:
        others = [key for key in self._held if key != newcomer]
        cold = next((key for key in others if not self._is_hot(key)), None)
        if cold is not None:
            return cold
        # A version of the past is no reason to lose a table that is in use.
        is_past = newcomer[1] is not None
        return newcomer if newcomer in self._held and (is_past or not others) else others[0]

    def _is_hot(self, key: Key) -> bool:
        return key[1] is None and self._held[key].asks > 1 and not self._is_unused(key)

    def _is_unused(self, key: Key) -> bool:
        return self._clock() - self._held[key].asked_at > _HOT

    def _of(self, location: Location) -> Iterator[Held]:
        for version in (None, *self._versions.get(location, ())):
            held = self._get((location, version))
            if held is not None:
                yield held

    def _drop(self, key: Key) -> None:
        held = self._held.pop(key, None)
        if held is None:
            return
        self._ledger.remove(key, held.snapshot)
        location, version = key
        if version is not None:
            self._versions[location].remove(version)
            if not self._versions[location]:
                del self._versions[location]
