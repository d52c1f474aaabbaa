"""How many rows fit into a page, told before they are rendered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from gateway.services.snapshot.answer.batch import MAX_BYTES, MAX_FILES
from gateway.services.snapshot.answer.line import MAX_STATS_BYTES
from gateway.services.snapshot.log.schema import ENCODED

# How many pages are rendered at once: a step over a column costs as much for a row as for hundreds.
BATCH: Final = 8

# What a line has besides its path and the texts of the log, roughly; and one with a deletion vector.
_LINE_BYTES: Final = 384
_VECTOR_BYTES: Final = 256


def fitting(rows: pl.DataFrame, *, pages: int = 1) -> int:
    """Return how many rows from the front make at most so many pages, and at least one row."""
    rows = rows.head(pages * MAX_FILES)
    total = rows.select(_weight(rows.columns).cum_sum()).to_series()
    return max(int((total <= pages * MAX_BYTES).sum()), 1)


def _weight(columns: Sequence[str]) -> pl.Expr:
    """Return how many bytes of lines and paths a row makes, roughly and rather too many."""
    path = pl.col(ENCODED).fill_null(pl.col("path")) if ENCODED in columns else pl.col("path")
    parts = [pl.lit(_LINE_BYTES), path.str.len_bytes(), _entries("partitionValues")]
    if "tags" in columns:
        parts.append(_entries("tags"))
    if "stats" in columns:
        length, characters = pl.col("stats").str.len_bytes(), pl.col("stats").str.len_chars()
        # At worst every character is escaped: a quote to two bytes, what is not ASCII to six for each unit.
        escaped = 2 * length + 6 * (length - characters)
        parts.append(pl.when(length <= MAX_STATS_BYTES).then(escaped).otherwise(0))
    if "deletionVector" in columns:
        text = pl.col("deletionVector").struct.field("pathOrInlineDv")
        parts.append(6 * text.str.len_bytes() + _VECTOR_BYTES)
    return pl.sum_horizontal(part.cast(pl.Int64) for part in parts)


def _entries(name: str) -> pl.Expr:
    entries = pl.col(name).map
    names = entries.keys().list.join("").str.len_bytes() + 6 * entries.len()
    values = entries.values().list.join("", ignore_nulls=True).str.len_bytes()
    return 6 * (names + values)
