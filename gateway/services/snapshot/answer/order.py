"""Files in the order of their keys, a page at a time: the same pages however the log was read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import polars as pl

from gateway.services.snapshot.log.schema import vector_id, vector_ids
from gateway.services.snapshot.state.files import Files

# A path, and what identifies its deletion vector: empty without one.
Key = tuple[str, str]

# How many rows are looked at at a time for those that are wanted.
_BLOCK: Final = 32_768


def order_of(files: Files) -> pl.Series:
    """Return the numbers of all rows in the order of their keys, sorted at the first time."""
    return files.columns.get_order(lambda: _sorted(files.frame))


def page_rows(
    files: Files, kept: pl.Series | None, after: Key | None, count: int, order: pl.Series | None = None
) -> tuple[pl.DataFrame, Key | None]:
    """Return the first files after a key, and the key of the last of them where more follow."""
    order = order_of(files) if order is None else order
    start = 0 if after is None else _find_start(files, order, after)
    masks = [mask for mask in (files.live, kept) if mask is not None]
    # One more than a page, to know whether others follow.
    found = _wanted(order, start, masks, count + 1)
    rows = files.frame[found.head(count)]
    return rows, None if found.len() <= count else _key(files, found[count - 1])


def _sorted(frame: pl.DataFrame) -> pl.Series:
    vector = vector_id(pl.col("deletionVector")).fill_null("")
    return frame.select(pl.arg_sort_by("path", vector)).to_series()


def _find_start(files: Files, order: pl.Series, after: Key) -> int:
    """Return the place in the order of the first row after a key, which may be that of no file any more."""
    return bisect_right(range(order.len()), after, key=lambda place: _key(files, order[place]))


def _key(files: Files, row: int) -> Key:
    [vector] = vector_ids(files.frame["deletionVector"], pl.Series([row]))
    return files.frame["path"][row], vector or ""


def _wanted(order: pl.Series, start: int, masks: Sequence[pl.Series], count: int) -> pl.Series:
    """Return the first so many rows from a place on of which all masks, one value for each row, are true."""
    found: list[pl.Series] = [order.clear()]
    missing = count
    for at in range(start, order.len(), _BLOCK):
        rows = order.slice(at, _BLOCK)
        for mask in masks:
            rows = rows.filter(mask.gather(rows))
        found.append(rows.head(missing))
        missing -= found[-1].len()
        if not missing:
            break
    return pl.concat(found)
