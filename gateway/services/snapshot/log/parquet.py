"""Reads columns of a parquet file whose author may mean harm: bounded before any of it is decoded."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from gateway.services.snapshot.log.beyond import Beyond
from gateway.services.snapshot.log.bounds import Allowance, Budget
from gateway.services.snapshot.log.footer import Column, Footer, RowGroup, read_footer
from gateway.services.snapshot.log.pages import Page, walk_pages
from gateway.services.snapshot.log.prefixes import COUNTED, measure_counted
from gateway.services.snapshot.log.projection import (
    Rows,
    Selected,
    Wanted,
    paths_of,
    select_columns,
    write_parquet,
)
from gateway.services.snapshot.log.thrift import Malformed

# What a value takes that is no text, by the number of its type.
_WIDTHS: Final = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
_FIXED: Final = 7
# Of a text, beside its bytes: where it lies, and how long it is.
_VIEW: Final = 16
# Of a list, beside what is in it: where that begins, at each level.
_LIST: Final = 16
_REPEATED: Final = 2
# Of each group that a value is in, beyond as many as Delta has around statistics: that takes time.
_GROUP: Final = 4
_FEW_GROUPS: Final = 8
# Of a page, whatever is in it: many that are empty take time, and their headers are bytes that are read.
_PAGE: Final = 16 * 1024
# Of a name, beside its letters.
_NAME: Final = 64


def open_parquet(content: bytes, budget: Budget) -> Footer:
    """Return what a file says of itself; raise ``Malformed`` or ``Beyond``."""
    footer = read_footer(content)
    budget.take_rows(sum(group.num_rows for group in footer.row_groups))
    return footer


def read_parquet(content: bytes, footer: Footer, wanted: Wanted, allowance: Allowance) -> pl.DataFrame:
    """Return the columns that are wanted, as far as there are such; raise ``Malformed`` or ``Beyond``."""
    columns = select_columns(footer.columns, wanted)
    groups = _walk(content, footer, list(paths_of(columns)), allowance)
    if not groups or not groups[0].columns:
        return pl.DataFrame()
    return pl.read_parquet(io.BytesIO(write_parquet(content, columns, groups)))


def _walk(
    content: bytes, footer: Footer, paths: Sequence[tuple[Column, ...]], allowance: Allowance
) -> list[Rows]:
    """Look at all pages before any of them is decoded."""
    most, excess = allowance.most(len(content))
    walk = _Walk(content=content, end=footer.start, most=most, excess=excess)
    groups = [walk.rows(group, paths) for group in footer.row_groups if group.num_rows]
    selected = [column for group in groups for column in group.columns]
    allowance.grant(_covered(page for column in selected for page in column.pages))
    allowance.take(walk.taken)
    # Only now, as it takes a look into pages, and what those come to is known to be there.
    for column in selected:
        for page in column.pages:
            if page.encoding in COUNTED:
                allowance.take(measure_counted(content, page, column.codec, column.path))
    return groups


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Counts what pages come to by what they say of themselves."""

    content: bytes
    # Where the pages end.
    end: int
    # What there is at most, and what to tell of more, which is given up on the way.
    most: int
    excess: str
    taken: int = 0

    def rows(self, group: RowGroup, paths: Sequence[tuple[Column, ...]]) -> Rows:
        return Rows(num_rows=group.num_rows, columns=[self._select(group, path) for path in paths])

    def _select(self, group: RowGroup, path: tuple[Column, ...]) -> Selected:
        chunk = group.chunk(path[-1].leaf or 0)
        if chunk.num_values < group.num_rows:
            raise Malformed("it has fewer values than rows")
        self._take(sum(len(each.name) + _NAME for each in path))
        width = _width(path)
        pages = []
        for page in walk_pages(self.content, self.end, chunk):
            self._take(_PAGE + max(page.size, page.length) + page.num_values * width)
            pages.append(page)
        return Selected(path=path, codec=chunk.codec, pages=pages)

    def _take(self, size: int) -> None:
        self.taken += size
        if self.taken > self.most:
            raise Beyond(self.excess)


def _covered(pages: Iterable[Page]) -> int:
    """Return how many bytes of the file are in pages: each once, however many columns it is in."""
    covered = reached = 0
    for start, end in sorted((page.at, page.end) for page in pages):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered


def _width(path: Sequence[Column]) -> int:
    """Return what a value takes, with what is around it."""
    element = path[-1].element
    kind = element.integer(1)
    lists = sum(column.element.find(3) == _REPEATED for column in path)
    around = _LIST * lists + _GROUP * max(0, len(path) - _FEW_GROUPS)
    return around + _WIDTHS.get(kind, _VIEW) + (element.size(2) if kind == _FIXED else 0)
