"""The files of a version: rows that are only ever appended to, and which of them are live."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gateway.services.snapshot.state.columns import Columns
from gateway.services.snapshot.state.segments import Segments

# Views, offsets and validity, which the estimate of a frame's size leaves out.
_BYTES_PER_ROW: Final = 120
_BYTES_PER_DROPPED: Final = 500


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """The rows that files began with, which all that grew from them share; known by its identity."""

    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """A later version keeps these rows in their order and appends its own."""

    # The columns of ``log.schema.FILES``.
    frame: pl.DataFrame = field(repr=False)
    # Booleans, one for each row; None: all are live.
    live: pl.Series | None = field(default=None, repr=False)
    # The checkpoint's ``stats_parsed``, as it has it, one for each row (null where a row has none);
    # None: no row has any.
    parsed: pl.Series | None = field(default=None, repr=False)
    num_files: int
    # The bytes of the live files, as the log states them.
    size: int
    # Files that have no row any more and still take memory: texts are parts of buffers that all share.
    dropped: int = 0
    # None where nothing is shared with other versions.
    stock: Stock | None = field(default=None, repr=False)
    # What the rows take that were appended to the stock.
    grown: int = 0
    # What queries have had made of the rows.
    columns: Columns = field(default_factory=Columns, repr=False, compare=False)
    segments: Segments = field(default_factory=Segments, repr=False, compare=False)

    @property
    def height(self) -> int:
        """Return how many rows there are, live or not."""
        return self.frame.height

    @property
    def own_memory(self) -> int:
        """Return what these files take beside their stock."""
        rows = memory_of(self.frame, self.parsed, self.dropped) if self.stock is None else self.grown
        return rows + self.columns.memory

    @property
    def memory(self) -> int:
        return self.own_memory + (self.stock.memory if self.stock is not None else 0)

    def rows(self, offset: int, length: int, kept: pl.Series | None = None) -> pl.DataFrame:
        """Return the live rows of a slice, of those only that ``kept``, one for each row, says true of."""
        rows = self.frame.slice(offset, length)
        wanted = _both(self.live, kept, offset, length)
        return rows if wanted is None else rows.filter(wanted)


def memory_of(frame: pl.DataFrame, parsed: pl.Series | None, dropped: int) -> int:
    """Return what rows take, with the files that are not among them any more; slow where they are many."""
    rows = int(frame.estimated_size()) + _BYTES_PER_ROW * frame.height
    # Of a dropped file only the texts are left, as long as those of another.
    texts = dropped * (rows // frame.height if frame.height else _BYTES_PER_DROPPED)
    return rows + texts + (int(parsed.estimated_size()) if parsed is not None else 0)


def _both(live: pl.Series | None, kept: pl.Series | None, offset: int, length: int) -> pl.Series | None:
    masks = [mask.slice(offset, length) for mask in (live, kept) if mask is not None]
    if not masks:
        return None
    return masks[0] if len(masks) == 1 else masks[0] & masks[1]
