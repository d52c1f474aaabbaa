"""Walks through the blocks of an index, of which a few are in memory at a time, for the files of a query."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.order import Key, page_rows
from gateway.services.snapshot.answer.servable import require_servable
from gateway.services.snapshot.index.block import Block
from gateway.services.snapshot.index.manifest import TypedColumn
from gateway.services.snapshot.index.shelf import IndexShelf
from gateway.services.snapshot.log.schema import vector_id
from gateway.services.snapshot.predicate.hints import Hints
from gateway.services.snapshot.predicate.prune import find_kept
from gateway.services.snapshot.predicate.zones import find_blocks, typed_columns
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.indexed import Indexed

_ORDER: Final = "order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """A block's files, and which of its rows the hints keep; None: all."""

    files: Files
    kept: pl.Series | None = field(default=None, repr=False)

    def rows(self) -> pl.DataFrame:
        """Return the live rows that are kept."""
        return self.files.rows(0, self.files.height, self.kept)

    @property
    def count(self) -> int:
        if self.kept is None:
            return self.files.num_files
        return int((self.kept if self.files.live is None else self.kept & self.files.live).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What a query asks for of the files of an index."""

    shelf: IndexShelf
    indexed: Indexed
    hints: Hints
    # The blocks that may hold some of it, in the order of their keys.
    blocks: Sequence[int]
    # Those columns of the hints of which the index has statistics by type.
    columns: dict[int, TypedColumn]

    async def walk(self, numbers: Iterable[int]) -> AsyncGenerator[Walked]:
        """Return block after block as they are asked for; raise ``IndexFault`` when one cannot be had."""
        waiting: asyncio.Task[Block] | None = None
        ahead = list(numbers)
        try:
            for place, number in enumerate(ahead):
                loading = waiting or self._load(number)
                block = await loading
                # The next one is on its way while this one is looked at.
                waiting = self._load(ahead[place + 1]) if place + 1 < len(ahead) else None
                yield await asyncio.to_thread(self._walked, number, block)
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    async def require_servable(self, grant: Grant) -> None:
        """Raise ``Unsupported`` when a wanted file is where the grant does not reach."""
        odd = self.indexed.index.zones.frame["odd"]
        async with aclosing(self.walk([number for number in self.blocks if odd[number]])) as blocks:
            async for walked in blocks:
                await asyncio.to_thread(require_servable, walked.files, grant, walked.kept)

    async def first_rows(self, after: Key | None, count: int) -> pl.DataFrame:
        """Return the first so many wanted rows after a key, in the order of keys."""
        start = self.indexed.index.zones.find_start(after)
        found: list[pl.DataFrame] = []
        missing = count
        async with aclosing(self.walk([number for number in self.blocks if number >= start])) as blocks:
            async for walked in blocks:
                rows = await asyncio.to_thread(_rows_after, walked, after, missing)
                found.append(rows)
                missing -= rows.height
                if missing <= 0:
                    break
        return pl.concat(found) if found else pl.DataFrame()

    def _load(self, number: int) -> asyncio.Task[Block]:
        return asyncio.ensure_future(self.shelf.load(self.indexed.index, number))

    def _walked(self, number: int, block: Block) -> Walked:
        live = self.indexed.live(number, block.frame)
        files = Files(
            frame=block.frame,
            live=live,
            parsed=block.parsed(self.columns) if self.columns else None,
            num_files=block.frame.height if live is None else int(live.sum()),
            size=0,
            segments=self.indexed.segments_of(number),
        )
        return Walked(files=files, kept=find_kept(files, self.hints))


def start_walk(shelf: IndexShelf, indexed: Indexed, hints: Hints) -> Walk:
    """Return the walk through those blocks that may hold a file which the hints keep."""
    kept = find_blocks(indexed.index, hints)
    blocks = range(indexed.index.zones.height) if kept is None else kept.arg_true().to_list()
    columns = typed_columns(indexed.index, hints)
    return Walk(shelf=shelf, indexed=indexed, hints=hints, blocks=blocks, columns=columns)


def merge_page(parts: Sequence[pl.DataFrame], count: int) -> tuple[pl.DataFrame, Key | None]:
    """Return the first rows of several frames in the order of keys, and the last key where more follow."""
    rows = [part for part in parts if not part.is_empty()]
    if not rows:
        return parts[0], None
    vector = vector_id(pl.col("deletionVector")).fill_null("")
    merged = pl.concat(rows).with_columns(vector.alias(_ORDER)).sort("path", _ORDER)
    page = merged.head(count)
    last = None if merged.height <= count else (page["path"][-1], page[_ORDER][-1])
    return page.drop(_ORDER), last


def _rows_after(walked: Walked, after: Key | None, count: int) -> pl.DataFrame:
    # A block is in the order of its keys as it is.
    order = pl.int_range(walked.files.height, dtype=pl.UInt32, eager=True)
    return page_rows(walked.files, walked.kept, after, count, order)[0]
