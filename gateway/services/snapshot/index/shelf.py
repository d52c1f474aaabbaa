"""Finds the index of a table where this gateway keeps its state, and reads its blocks, a few at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import polars as pl

from gateway.domain.index import CURRENT, prefix_of, table_key
from gateway.domain.location import Location
from gateway.errors import Unavailable
from gateway.ports import SnapshotMetrics, StateStore
from gateway.services.snapshot.index.block import Block, read_block, read_keys
from gateway.services.snapshot.index.fault import IndexFault, Outcome, corrupt, missing
from gateway.services.snapshot.index.manifest import (
    Manifest,
    Pointer,
    Stored,
    read_manifest,
    read_pointer,
)
from gateway.services.snapshot.index.zones import Zone, Zones, read_zones

# What the blocks take that are held for whoever comes next: pages of one block are asked for one by one.
MEMORY: Final = 64 * 1024 * 1024
# How many indexes are known to be of no use, beyond which the first get another chance.
_MOST: Final = 1000
# How many keys a listing gives at a time.
_LISTED: Final = 1000

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Index:
    """The files of a table at a version, in blocks that are read when they are asked for."""

    # What the keys of its files begin with.
    prefix: str
    # Of its manifest.
    digest: str
    manifest: Manifest
    zones: Zones = field(repr=False)

    @property
    def memory(self) -> int:
        return self.zones.memory


class IndexShelf:
    """Whatever is wrong with an index, it is counted and told once; the log says the same as it does."""

    def __init__(self, state: StateStore, metrics: SnapshotMetrics, *, memory: int = MEMORY) -> None:
        self._state = state
        self._metrics = metrics
        self._memory = memory
        # What was used longest ago is first.
        self._blocks: OrderedDict[tuple[str, int], Block] = OrderedDict()
        self._held = 0
        # By the digest of its manifest, what is known of an index that is of no use.
        self._unusable: OrderedDict[str, Outcome] = OrderedDict()
        self._told: OrderedDict[tuple[Location, str, Outcome], None] = OrderedDict()

    @property
    def memory(self) -> int:
        """Return what blocks may take that are held."""
        return self._memory

    async def find(
        self, location: Location, newest: int, after: int = -1, *, latest: int | None = None
    ) -> Index | None:
        """Return the index that is in force of a table, of a version after one and up to another.

        One of a version after the latest that the log has is of another table, and that is told.
        """
        prefix = prefix_of(location)
        pointer: Pointer | None = None
        try:
            pointer = await self._read_pointer(prefix)
            if pointer is None:
                self._metrics.count_index(Outcome.NONE)
                return None
            if pointer.version <= after:
                return None
            _require_version(pointer, latest)
            if known := self._unusable.get(pointer.manifest.sha256):
                self._metrics.count_index(known)
                return None
            return await self._open(prefix, pointer, location, newest)
        except IndexFault as exc:
            self._give_up(location, exc, "" if pointer is None else pointer.manifest.sha256)
        except Unavailable as exc:
            self._give_up(location, IndexFault(Outcome.UNAVAILABLE, str(exc)), "")
        return None

    def count_used(self) -> None:
        self._metrics.count_index(Outcome.USED)

    def give_up(self, location: Location, fault: IndexFault, index: Index) -> None:
        """Count that an index is of no use, and remember it where it never will be."""
        self._give_up(location, fault, index.digest)

    async def load(self, index: Index, number: int) -> Block:
        """Return a block; raise ``IndexFault`` when it is not what it was, or cannot be had."""
        key = index.prefix + index.manifest.name, number
        held = self._blocks.get(key)
        if held is not None:
            self._blocks.move_to_end(key)
            return held
        block = await self._read(index, number, read_block)
        self._keep(key, block)
        return block

    async def load_keys(self, index: Index, number: int) -> pl.DataFrame:
        """Return the keys and sizes of the files of a block; nothing is kept of them."""
        return await self._read(index, number, read_keys)

    def _give_up(self, location: Location, fault: IndexFault, digest: str) -> None:
        self._metrics.count_index(fault.outcome)
        if fault.outcome in {Outcome.CORRUPT, Outcome.MISSING} and digest:
            _remember(self._unusable, digest, fault.outcome)
        key = location, digest, fault.outcome
        if fault.outcome is Outcome.LATER or key in self._told:
            return
        _remember(self._told, key, None)
        facts = {"location": str(location), "reason": fault.outcome.value, "error": str(fault)}
        _log.warning("a table's index is not used", extra=facts)

    async def _read(self, index: Index, number: int, read: Callable[[Zone, bytes], T]) -> T:
        zone = index.zones.zone(number)
        content = await self._get(index.prefix, zone.stored)
        return await asyncio.to_thread(read, zone, content)

    def _keep(self, key: tuple[str, int], block: Block) -> None:
        before = self._blocks.pop(key, None)
        self._held += block.memory - (0 if before is None else before.memory)
        self._blocks[key] = block
        while self._held > self._memory and len(self._blocks) > 1:
            _, oldest = self._blocks.popitem(last=False)
            self._held -= oldest.memory

    async def _read_pointer(self, prefix: str) -> Pointer | None:
        entry = await self._state.get(f"{prefix}{CURRENT}")
        return None if entry is None else read_pointer(entry.content)

    async def _open(self, prefix: str, pointer: Pointer, location: Location, newest: int) -> Index:
        if pointer.version > newest:
            raise IndexFault(Outcome.LATER, "it is of a later version than the one that is asked for")
        content = await self._get(prefix, pointer.manifest)
        pointer.manifest.check(content)
        manifest = await asyncio.to_thread(read_manifest, pointer.name, content)
        if (manifest.version, manifest.num_files) != (pointer.version, pointer.num_files):
            raise corrupt("its manifest is of another version than its pointer")
        if manifest.location != table_key(location):
            raise IndexFault(Outcome.STALE, "it is of a table in another place")
        content = await self._get(prefix, manifest.zones)
        manifest.zones.check(content)
        zones = await asyncio.to_thread(read_zones, content, manifest)
        await self._require_files(prefix, zones)
        return Index(prefix=prefix, digest=pointer.manifest.sha256, manifest=manifest, zones=zones)

    async def _require_files(self, prefix: str, zones: Zones) -> None:
        """Refuse an index of which a file is gone or was cut short, before anything of it is answered."""
        found: dict[str, int] = {}
        after = ""
        while listed := await self._state.list(prefix, after=after, limit=_LISTED):
            found.update((each.key, each.size) for each in listed)
            after = listed[-1].key
        await asyncio.to_thread(_require_sizes, prefix, zones, found)

    async def _get(self, prefix: str, stored: Stored) -> bytes:
        try:
            entry = await self._state.get(prefix + stored.key)
        except Unavailable as exc:
            raise IndexFault(Outcome.UNAVAILABLE, str(exc)) from exc
        if entry is None:
            raise missing(f"{stored.key} is not there")
        return entry.content


def _remember(known: OrderedDict[K, V], key: K, value: V) -> None:
    if len(known) >= _MOST:
        known.popitem(last=False)
    known[key] = value


def _require_version(pointer: Pointer, latest: int | None) -> None:
    if latest is not None and pointer.version > latest:
        raise IndexFault(Outcome.STALE, "it is of a version that the log does not have")


def _require_sizes(prefix: str, zones: Zones, found: dict[str, int]) -> None:
    for file, length in zip(zones.frame["file"], zones.frame["length"], strict=True):
        if (size := found.get(prefix + file)) != length:
            raise missing(f"{file} is {'not there' if size is None else 'cut short'}")
