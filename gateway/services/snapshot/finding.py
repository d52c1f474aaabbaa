"""Which files of a version a query asks for: no thread waits for what another one makes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from gateway.domain.grant import Grant
from gateway.domain.location import Location
from gateway.ports import SnapshotMetrics
from gateway.services.snapshot.answer.order import Key, order_of, page_rows
from gateway.services.snapshot.answer.servable import require_servable
from gateway.services.snapshot.index.shelf import IndexShelf
from gateway.services.snapshot.log.parsing import Parsing
from gateway.services.snapshot.predicate.hints import Hints
from gateway.services.snapshot.predicate.prune import Unread, find_kept
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.indexed import Indexed
from gateway.services.snapshot.walk.walking import Walk, merge_page, start_walk


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesAsked:
    """What a query asks for of the files of a version."""

    files: Files
    grant: Grant
    # It may take its time, and is called once.
    parse_hints: Callable[[], Hints] = field(repr=False)
    # How many files a page of the answer has; None: all in one.
    count: int | None = None
    # None: from the first file on.
    after: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    rows: pl.DataFrame = field(repr=False)
    # The key of the last of them; None when no others follow.
    last: Key | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFound:
    hints: Hints
    # Which rows the hints keep; None: all.
    kept: pl.Series | None = field(default=None, repr=False)
    # None where all are asked for in one.
    page: Page | None = None
    # To what is wanted of an index; None without one.
    walk: Walk | None = field(default=None, repr=False)


class FileFinder:
    """What is made of a table's rows is made by one thread for each table, of threads that do nothing else.

    Others that ask for it wait without a thread: the tables that need none of it are answered meanwhile.
    """

    def __init__(self, metrics: SnapshotMetrics) -> None:
        self._metrics = metrics
        # Apart: a page is not kept waiting by statistics that it does not need.
        self._reading = Parsing(_threads())
        self._sorting = Parsing(_threads())

    async def find(self, table: Location, asked: FilesAsked) -> FilesFound:
        """Return what is asked for; raise ``Unsupported`` when a file of it cannot be served."""
        order = None if asked.count is None else await self._order(table, asked.files)
        found = await asyncio.to_thread(self._find_soon, asked, order)
        if isinstance(found, FilesFound):
            return found
        return await self._reading.run(table, partial(self._find, asked, order, found))

    async def _order(self, table: Location, files: Files) -> pl.Series:
        known = files.columns.find_order()
        return await self._sorting.run(table, partial(order_of, files)) if known is None else known

    def _find_soon(self, asked: FilesAsked, order: pl.Series | None) -> FilesFound | Hints:
        """Return what is found; or what the hints are, where that takes columns that are still to be made."""
        hints = asked.parse_hints()
        try:
            kept = find_kept(asked.files, hints, soon=True)
        except Unread:
            return hints
        return self._found(asked, order, hints, kept)

    def _find(self, asked: FilesAsked, order: pl.Series | None, hints: Hints) -> FilesFound:
        return self._found(asked, order, hints, find_kept(asked.files, hints))

    def _found(
        self, asked: FilesAsked, order: pl.Series | None, hints: Hints, kept: pl.Series | None
    ) -> FilesFound:
        files = asked.files
        if kept is not None:
            count = int((kept if files.live is None else kept & files.live).sum())
            self._metrics.count_pruned(count, files.num_files - count)
        page = None
        if asked.count is not None:
            rows, last = page_rows(files, kept, asked.after, asked.count, order)
            page = Page(rows=rows, last=last)
        if page is None or asked.after is None:
            require_servable(files, asked.grant, kept)
        else:
            # The rest was looked at for the first page.
            require_servable(Files(frame=page.rows, num_files=page.rows.height, size=0), asked.grant)
        return FilesFound(hints=hints, kept=kept, page=page)


class IndexFinder:
    """Finds files that are in an index, and those that came since."""

    def __init__(self, shelf: IndexShelf, metrics: SnapshotMetrics) -> None:
        self._shelf = shelf
        self._metrics = metrics

    async def find(self, indexed: Indexed, asked: FilesAsked) -> FilesFound:
        """Return what is asked for; raise ``IndexFault`` when the index is of no use."""
        hints = await asyncio.to_thread(asked.parse_hints)
        walk = await asyncio.to_thread(start_walk, self._shelf, indexed, hints)
        self._metrics.count_blocks(len(walk.blocks), indexed.index.zones.height - len(walk.blocks))
        kept = await asyncio.to_thread(find_kept, asked.files, hints)
        page = None if asked.count is None else await self._page(walk, asked, asked.count, kept)
        if page is None or asked.after is None:
            await asyncio.to_thread(require_servable, asked.files, asked.grant, kept)
            await walk.require_servable(asked.grant)
        else:
            # The rest was looked at for the first page.
            rows = Files(frame=page.rows, num_files=page.rows.height, size=0)
            await asyncio.to_thread(require_servable, rows, asked.grant)
        if page is None and walk.blocks:
            # What is wrong with it is best found before the first line.
            await self._shelf.load(indexed.index, walk.blocks[0])
        return FilesFound(hints=hints, kept=kept, page=page, walk=walk)

    async def _page(self, walk: Walk, asked: FilesAsked, count: int, kept: pl.Series | None) -> Page:
        # One more than a page, to know whether others follow.
        newer, _ = await asyncio.to_thread(page_rows, asked.files, kept, asked.after, count + 1)
        older = await walk.first_rows(asked.after, count + 1)
        rows, last = await asyncio.to_thread(merge_page, [newer, older], count)
        return Page(rows=rows, last=last)


def _threads() -> int:
    return max(2, os.cpu_count() or 1)
