"""The files of a version: rows that are only ever appended to, and which of them are live."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl


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

    @property
    def height(self) -> int:
        """Return how many rows there are, live or not."""
        return self.frame.height

    def rows(self, offset: int, length: int, kept: pl.Series | None = None) -> pl.DataFrame:
        """Return the live rows of a slice, of those only that ``kept``, one for each row, says true of."""
        rows = self.frame.slice(offset, length)
        wanted = _both(self.live, kept, offset, length)
        return rows if wanted is None else rows.filter(wanted)


def _both(live: pl.Series | None, kept: pl.Series | None, offset: int, length: int) -> pl.Series | None:
    masks = [mask.slice(offset, length) for mask in (live, kept) if mask is not None]
    if not masks:
        return None
    return masks[0] if len(masks) == 1 else masks[0] & masks[1]
