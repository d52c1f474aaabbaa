"""Versions by way of an index, where there is one that is worth it; the log answers where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gateway.domain.log import version_prefix
from gateway.errors import Unsupported
from gateway.services.snapshot.index.fault import IndexFault, Outcome
from gateway.services.snapshot.index.manifest import is_anchor
from gateway.services.snapshot.index.shelf import Index, IndexShelf
from gateway.services.snapshot.log.listing import LogListing, list_log, look_through
from gateway.services.snapshot.log.loading import Loaded, load_steps
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.cost import cost_of_steps, cost_of_version
from gateway.services.snapshot.state.indexed_replay import advance_indexed, open_index
from gateway.services.snapshot.state.snapshot import Snapshot

# A log of fewer bytes is read in a fraction of a second: whether there is an index is not even asked.
_SMALL_LOG: Final = 8 * 1024 * 1024
# So many bytes of commits are read on top of an index, or half of what the log has to be read for otherwise.
_MANY_STEPS: Final = 64 * 1024 * 1024
# From so many files on that are held beside an index, or gone from it, a newer one is looked for.
_HEAVY: Final = 20_000


class IndexLoader:
    def __init__(
        self,
        shelf: IndexShelf,
        *,
        small_log: int = _SMALL_LOG,
        many_steps: int = _MANY_STEPS,
        heavy: int = _HEAVY,
    ) -> None:
        self.shelf = shelf
        self._small_log = small_log
        self._many_steps = many_steps
        self._heavy = heavy

    async def load(
        self, log: TableLog, listing: LogListing, version: int, *, after: int = -1
    ) -> Snapshot | None:
        """Return a version by the index of its table, where that is of a version after one.

        None where the log is to be read: whatever is wrong with an index is counted, and no error.
        """
        cost = await look_through(log, listing, cost_of_version, version)
        if cost < self._small_log:
            return None
        index = await self.shelf.find(log.location, version, after, latest=listing.latest)
        if index is None:
            return None
        try:
            snapshot = await self._load(log, listing, index, version, cost)
        except IndexFault as exc:
            self.shelf.give_up(log.location, exc, index)
            return None
        self.shelf.count_used()
        return snapshot

    async def is_far(self, log: TableLog, listing: LogListing, steps: int, version: int) -> bool:
        """Tell whether commits of so many bytes are more than is read on top of an index."""
        if steps <= self._many_steps:
            return False
        # From where the listing begins: of a log whose checkpoint is not in it, the commits are all there is.
        return steps > await look_through(log, listing, cost_of_version, version) // 2

    async def newer(
        self, log: TableLog, listing: LogListing, base: Snapshot, version: int
    ) -> Snapshot | None:
        """Return a version by a newer index than that of a snapshot which has grown heavy beside its own."""
        indexed = base.indexed
        if indexed is None or base.files.height + indexed.num_gone < self._heavy:
            return None
        return await self.load(log, listing, version, after=indexed.index.manifest.version)

    async def advance(self, log: TableLog, base: Snapshot, loaded: Loaded) -> Snapshot | None:
        """Return what a snapshot over an index becomes by commits; None when the index is of no use."""
        if base.indexed is None:
            return None
        try:
            return await advance_indexed(self.shelf, base, base.indexed, loaded)
        except IndexFault as exc:
            self.shelf.give_up(log.location, exc, base.indexed.index)
            return None

    async def _load(
        self, log: TableLog, listing: LogListing, index: Index, version: int, cost: int
    ) -> Snapshot:
        made_of = index.manifest.version
        if made_of not in listing.commits:
            # It was listed from a later checkpoint on.
            listing = await list_log(log, version_prefix(made_of))
        anchor = listing.find_anchor(made_of)
        if anchor is None or not is_anchor(index.manifest.anchor, anchor):
            raise IndexFault(Outcome.STALE, "the log has another file in the place of the one it was made by")
        base = replace(open_index(index), anchor=anchor)
        if made_of == version:
            return base
        steps = await look_through(log, listing, cost_of_steps, made_of, version)
        if steps > max(self._many_steps, cost // 2):
            raise IndexFault(Outcome.OLD, "too much was committed since it was made")
        loaded = await _load_steps(log, listing, made_of, version)
        if loaded is None or base.indexed is None:
            raise IndexFault(Outcome.STALE, "the log no longer has all commits since it was made")
        return await advance_indexed(self.shelf, base, base.indexed, loaded)


async def _load_steps(log: TableLog, listing: LogListing, after: int, version: int) -> Loaded | None:
    try:
        return await load_steps(log, listing, after, version)
    except Unsupported:
        # What is damaged is found out, and told, by who reads the log itself.
        return None
