"""Snapshots by table: read once, brought up to date by the new commits alone, shared by all requests."""

from __future__ import annotations

import logging
import os
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from gateway.domain.log import version_prefix
from gateway.ports import Clock, SnapshotMetrics
from gateway.services.snapshot.index.fault import IndexFault
from gateway.services.snapshot.index.shelf import IndexShelf
from gateway.services.snapshot.log.bounds import Crowded
from gateway.services.snapshot.log.listing import LogListing, list_log, list_recent, look_through
from gateway.services.snapshot.log.loading import load_steps, load_version
from gateway.services.snapshot.log.parsing import Parsing
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.cost import are_steps_cheaper, cost_of_steps, cost_of_version
from gateway.services.snapshot.state.flight import SingleFlight
from gateway.services.snapshot.state.gate import LoadGate
from gateway.services.snapshot.state.index_loading import IndexLoader
from gateway.services.snapshot.state.indexed import Indexed
from gateway.services.snapshot.state.kept import Held, KeptSnapshots
from gateway.services.snapshot.state.replay import advance, load
from gateway.services.snapshot.state.snapshot import Snapshot

# How much of logs is read at once; what is made of it takes several times as much while it is made.
_AT_ONCE: Final = 128 * 1024 * 1024

_ALWAYS_CHECK: Final = timedelta(0)

_log = logging.getLogger(__name__)


class SnapshotStore:
    """Every answer is as fresh as a listing that was under way when it was asked for, or later.

    A caller that accepts an older answer says how old: the log is not looked at again within that time.
    """

    def __init__(
        self, *, memory: int, clock: Clock, metrics: SnapshotMetrics, indexes: IndexLoader | None = None
    ) -> None:
        # Blocks of indexes are held beside snapshots, in the same memory.
        blocks = 0 if indexes is None else indexes.shelf.memory
        self._kept = KeptSnapshots(memory=memory - blocks, clock=clock, metrics=metrics)
        self._indexes = indexes
        self._clock = clock
        self._metrics = metrics
        # Apart: a table that is known is not kept from its new commits by tables that are not.
        self._cold = _Lane()
        self._steps = _Lane()
        self._looks: SingleFlight[_Look] = SingleFlight()
        self._loads: SingleFlight[Snapshot] = SingleFlight()

    @property
    def parsing(self) -> Parsing:
        """Return the threads for what is parsed of logs elsewhere."""
        return self._cold.parsing

    @property
    def shelf(self) -> IndexShelf | None:
        """Return where blocks of indexes are read; None where no index is ever used."""
        return None if self._indexes is None else self._indexes.shelf

    def forsake(self, log: TableLog, indexed: Indexed, fault: IndexFault) -> None:
        """Read the table by its log from here on: what is known of it by an index cannot be answered."""
        if self._indexes is not None:
            self._indexes.shelf.give_up(log.location, fault, indexed.index)
        self._kept.forget_index(log.location, indexed.index)

    def by_log(self) -> SnapshotStore:
        """Return this store for who is to be answered by the log, whatever others come by."""
        other = copy(self)
        other._indexes = None  # noqa: SLF001
        other._kept = self._kept.without_indexes()  # noqa: SLF001
        # Apart: a reading that is under way may be one by the index.
        other._loads = SingleFlight()  # noqa: SLF001
        return other

    def measure(self, log: TableLog, snapshot: Snapshot) -> None:
        """Count what queries have had made of a snapshot's files by now."""
        self._kept.measure(log.location, snapshot)

    async def list_log(self, log: TableLog) -> LogListing:
        """Return the whole log; one listing serves all that ask while it runs."""
        listing = await self._list_whole(log)
        # Not every store lists a moment: a commit may be there that came later than one that is not. What is
        # before it would seem to be cleaned up, and a range that a time begins would begin after it.
        return await self._list_whole(log) if listing.has_gap else listing

    async def latest_version(self, log: TableLog, freshness: timedelta = _ALWAYS_CHECK) -> int:
        """Return the newest version without reading what is in it."""
        held = self._kept.ask(log.location)
        if held is not None and self._is_fresh(held, freshness):
            self._metrics.count_check("skipped")
            return held.snapshot.version
        look = await self._look(log, held)
        return look.listing.latest

    async def latest(self, log: TableLog, freshness: timedelta = _ALWAYS_CHECK) -> Snapshot:
        held = self._kept.ask(log.location)
        if held is not None and self._is_fresh(held, freshness):
            self._metrics.count_check("skipped")
            self._metrics.observe_staleness(self._clock() - held.checked_at, freshness)
            return held.snapshot
        look = await self._look(log, held)
        anchor = look.listing.find_anchor(look.listing.latest)
        held = self._kept.peek(log.location)
        if held is not None and held.snapshot.anchor == anchor:
            held.checked_at = max(held.checked_at, look.began_at)
            snapshot = held.snapshot
        else:
            # By where it leads to: who has seen a version listed must not join a reading of an older one.
            snapshot = await self._loads.run((log.location, anchor), lambda: self._refresh(log, look))
        self._metrics.observe_staleness(self._clock() - look.began_at, freshness)
        return snapshot

    async def at(self, log: TableLog, listing: LogListing, version: int) -> Snapshot:
        """Return the snapshot of a version that a listing of the whole log has."""
        anchor = listing.find_anchor(version)
        known = self._kept.find(log.location, version, anchor)
        if known is not None:
            return known

        async def work() -> Snapshot:
            snapshot = await self._read(log, listing, version)
            self._kept.keep_version(log.location, snapshot)
            return snapshot

        return await self._loads.run((log.location, version, anchor), work)

    async def _list_whole(self, log: TableLog) -> LogListing:
        look = await self._looks.run((log.location, ""), lambda: self._list(log, ""))
        return look.listing

    def _is_fresh(self, held: Held, freshness: timedelta) -> bool:
        # A clock that was set back says nothing.
        return timedelta(0) <= self._clock() - held.checked_at < freshness

    async def _look(self, log: TableLog, held: Held | None) -> _Look:
        """List the log from the latest snapshot on that is known, or else from its newest checkpoint on."""
        if held is not None:
            start = version_prefix(held.snapshot.version)
            look = await self._looks.run((log.location, start), lambda: self._list(log, start))
            if look.listing.find_anchor(held.snapshot.version) == held.snapshot.anchor:
                return look
            # The table was made anew in its place, or its log was cleaned up.
        return await self._looks.run((log.location, None), lambda: self._list(log, None))

    async def _list(self, log: TableLog, start: str | None) -> _Look:
        began_at = self._clock()
        try:
            listing = await (list_recent(log) if start is None else list_log(log, start))
        except Exception:
            self._metrics.count_check("failed")
            raise
        self._metrics.count_check("listed")
        return _Look(listing=listing, began_at=began_at)

    async def _refresh(self, log: TableLog, look: _Look) -> Snapshot:
        version = look.listing.latest
        snapshot = self._kept.find(log.location, version, look.listing.find_anchor(version))
        if snapshot is None:
            snapshot = await self._read(log, look.listing, version)
        self._kept.keep_latest(log.location, snapshot, look.began_at)
        return snapshot

    async def _read(self, log: TableLog, listing: LogListing, version: int) -> Snapshot:
        """Return a version by way of a known one, or from its checkpoint on."""
        began_at = self._clock()
        snapshot = await self._advance(log, listing, version)
        kind = "cold" if snapshot is None else "refresh"
        if snapshot is None:
            snapshot = await self._load(log, listing, version)
        elapsed = self._clock() - began_at
        self._metrics.observe_load(kind, elapsed, snapshot.num_files)
        facts = {
            "location": str(log.location),
            "version": snapshot.version,
            "files": snapshot.num_files,
            "kind": kind,
            "elapsed_ms": elapsed // timedelta(milliseconds=1),
        }
        _log.info("a table's log was read", extra=facts)
        return snapshot

    async def _advance(self, log: TableLog, listing: LogListing, version: int) -> Snapshot | None:
        base = self._kept.nearest(log.location, version, listing)
        if base is None:
            return None
        log = replace(log, parsing=self._steps.parsing)
        if base.indexed is not None:
            return await self._advance_indexed(log, listing, base, version)
        if not await look_through(log, listing, are_steps_cheaper, base.version, version):
            return None
        cost = await look_through(log, listing, cost_of_steps, base.version, version)
        async with self._steps.gate.room(log.location, cost):
            loaded = await load_steps(log, listing, base.version, version)
            return None if loaded is None else await log.parse(advance, base, loaded)

    async def _advance_indexed(
        self, log: TableLog, listing: LogListing, base: Snapshot, version: int
    ) -> Snapshot | None:
        """Return a version by way of a known one over an index, or of a newer index than that."""
        if self._indexes is None:
            return None
        cost = await look_through(log, listing, cost_of_steps, base.version, version)
        if await self._indexes.is_far(log, listing, cost, version):
            return None
        async with self._steps.gate.room(log.location, cost):
            newer = await self._indexes.newer(log, listing, base, version)
            if newer is not None:
                return newer
            loaded = await load_steps(log, listing, base.version, version)
            return None if loaded is None else await self._indexes.advance(log, base, loaded)

    async def _load(self, log: TableLog, listing: LogListing, version: int) -> Snapshot:
        log = replace(log, parsing=self._cold.parsing)
        if self._indexes is not None:
            snapshot = await self._indexes.load(log, listing, version)
            if snapshot is not None:
                return snapshot
        cost = await look_through(log, listing, cost_of_version, version)
        while True:
            try:
                return await self._load_within(log, listing, version, cost)
            except Crowded as exc:
                # From the start, with all room given back: two that wait for more would wait for each other.
                cost = self._cold.gate.size_for(exc.decoded)

    async def _load_within(self, log: TableLog, listing: LogListing, version: int, cost: int) -> Snapshot:
        async with self._cold.gate.room(log.location, cost) as room:
            loaded = await load_version(
                log, listing, version, room=room, count_fallback=self._metrics.count_fallback
            )
            return await log.parse(load, loaded)


def _parsing() -> Parsing:
    return Parsing(max(2, os.cpu_count() or 1))


def _gate() -> LoadGate:
    return LoadGate(_AT_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lane:
    """What loads of one kind share among them."""

    gate: LoadGate = field(default_factory=_gate)
    parsing: Parsing = field(default_factory=_parsing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    listing: LogListing
    # What was committed later may be missing.
    began_at: datetime
