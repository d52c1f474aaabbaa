"""From an index to a snapshot, and on by the commits that came after it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from gateway.services.snapshot.index.shelf import Index, IndexShelf
from gateway.services.snapshot.log.actions import Actions
from gateway.services.snapshot.log.loading import Loaded
from gateway.services.snapshot.log.reconcile import are_among, keys_of
from gateway.services.snapshot.state.growth import change_of, grow, start
from gateway.services.snapshot.state.indexed import Indexed
from gateway.services.snapshot.state.replay import last_metadata, last_protocol
from gateway.services.snapshot.state.snapshot import Snapshot


def open_index(index: Index) -> Snapshot:
    """Return the version that an index was made of, without any of its files."""
    manifest = index.manifest
    indexed = Indexed(index=index, num_files=manifest.num_files, size=manifest.size, vectors=manifest.vectors)
    return Snapshot(
        version=manifest.version,
        protocol=manifest.protocol,
        metadata=manifest.metadata,
        files=start(()),
        anchor=manifest.anchor,
        indexed=indexed,
    )


async def advance_indexed(shelf: IndexShelf, base: Snapshot, indexed: Indexed, loaded: Loaded) -> Snapshot:
    """Return the version that a snapshot over an index becomes by the commits after it."""
    return Snapshot(
        version=loaded.version,
        protocol=last_protocol(loaded.commits) or base.protocol,
        metadata=last_metadata(loaded.commits) or base.metadata,
        files=await asyncio.to_thread(grow, base.files, loaded.commits),
        anchor=loaded.anchor,
        indexed=await _ended(shelf, indexed, loaded.commits),
    )


async def _ended(shelf: IndexShelf, indexed: Indexed, commits: Sequence[Actions]) -> Indexed:
    """Return what is left after commits, for a look at the keys of the blocks that they may touch."""
    touched = await asyncio.to_thread(_touched, indexed.index, commits)
    ending = _Ending(indexed)
    for number in sorted(touched):
        keys = await shelf.load_keys(indexed.index, number)
        await asyncio.to_thread(ending.end, number, keys, touched[number])
    return ending.result()


def _touched(index: Index, commits: Sequence[Actions]) -> dict[int, pl.DataFrame]:
    """Return the keys that commits remove or add anew, by the blocks that may have them."""
    change = change_of(commits)
    keys = keys_of(change.added).vstack(change.removed).unique(maintain_order=True)
    found: dict[int, list[int]] = {}
    for row, path in enumerate(keys["path"]):
        for number in index.zones.find_blocks(path):
            found.setdefault(number, []).append(row)
    return {number: keys[rows] for number, rows in found.items()}


class _Ending:
    """Takes note of files that are gone, block by block."""

    def __init__(self, indexed: Indexed) -> None:
        self._before = indexed
        self._gone = dict(indexed.gone)
        self._segments = dict(indexed.segments)
        self._ended = pl.DataFrame(schema={"size": pl.Int64, "has_vector": pl.Boolean})

    def end(self, number: int, rows: pl.DataFrame, touched: pl.DataFrame) -> None:
        ended = are_among(keys_of(rows), touched)
        live = self._before.live(number, rows)
        lost = rows.filter(ended if live is None else ended & live)
        if lost.is_empty():
            return
        keys = [self._gone[number]] if number in self._gone else []
        self._gone[number] = pl.concat([*keys, keys_of(lost)])
        # What was rendered of it has files that are gone.
        self._segments.pop(number, None)
        has_vector = lost["deletionVector"].struct.field("storageType").is_not_null()
        self._ended.vstack(pl.DataFrame({"size": lost["size"], "has_vector": has_vector}), in_place=True)

    def result(self) -> Indexed:
        if self._ended.is_empty():
            return self._before
        return replace(
            self._before,
            gone=self._gone,
            segments=self._segments,
            num_files=self._before.num_files - self._ended.height,
            size=self._before.size - int(self._ended["size"].cast(pl.Int128).sum()),
            vectors=self._before.vectors - int(self._ended["has_vector"].sum()),
        )
