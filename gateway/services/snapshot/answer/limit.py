"""How many files it takes to give a client as many rows as it hints that it wants."""

from __future__ import annotations

from typing import Final

import polars as pl

# Far beyond any table, and small enough for a page's sum of records to fit 64 bits.
_MAX_LIMIT: Final = 2**50


def limited(rows: pl.DataFrame, limit: int) -> tuple[pl.DataFrame, int]:
    """Return the rows that it takes to reach the limit, and what is left of it after them."""
    limit = min(limit, _MAX_LIMIT)
    total = _records(rows).clip(0, limit).cum_sum()
    needed = int((total < limit).sum()) + 1
    return rows.head(needed), max(limit - int(total[min(needed, rows.height) - 1]), 0)


def _records(rows: pl.DataFrame) -> pl.Series:
    """Return how many rows each file surely has: those that its statistics count, without the deleted."""
    counted = pl.col("stats").str.json_path_match("$.numRecords").cast(pl.Int64, strict=False)
    deleted = pl.col("deletionVector").struct.field("cardinality").fill_null(0).clip(0)
    return rows.select(counted.fill_null(0).clip(0) - deleted).to_series()
