"""Files in the order of their keys, a page at a time: the same pages however the log was read."""

from __future__ import annotations

from typing import Final

import polars as pl

from gateway.services.snapshot.log.schema import VECTOR_ID, vector_id
from gateway.services.snapshot.state.files import Files

# A path, and what identifies its deletion vector: empty without one.
Key = tuple[str, str]

_ROW: Final = "row"


def page_rows(
    files: Files, kept: pl.Series | None, after: Key | None, count: int
) -> tuple[pl.DataFrame, Key | None]:
    """Return the first files after a key, and the key of the last of them where more follow."""
    vector = vector_id(pl.col("deletionVector")).fill_null("")
    keys = files.frame.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias(_ROW), "path", vector)
    keys = _wanted(keys, files, kept)
    if after is not None:
        path, vector_key = after
        later = pl.col(VECTOR_ID) > vector_key
        keys = keys.filter((pl.col("path") > path) | ((pl.col("path") == path) & later))
    # One more than a page, to know whether others follow; the smallest are found without sorting the rest.
    page = keys.bottom_k(count + 1, by=["path", VECTOR_ID]).sort("path", VECTOR_ID)
    rows = files.frame[page[_ROW].head(count)]
    if page.height <= count:
        return rows, None
    last = page.row(count - 1, named=True)
    return rows, (last["path"], last[VECTOR_ID])


def _wanted(keys: pl.DataFrame, files: Files, kept: pl.Series | None) -> pl.DataFrame:
    for mask in (files.live, kept):
        # Each mask has one value for each row of the frame, so it is taken by the rows that are left.
        if mask is not None:
            keys = keys.filter(mask.gather(keys[_ROW]))
    return keys
