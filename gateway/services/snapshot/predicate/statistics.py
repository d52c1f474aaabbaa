"""The statistics of files, read for the columns that are asked for and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

# A part of the rows at a time, as the library holds all of what it reads as a tree first.
_CHUNK: Final = 2_000
_KINDS: Final = ("minValues", "maxValues", "nullCount")
_RECORDS: Final = "numRecords"
_MEMBER: Final = "member"
# Where a row of two values would have its comma: the library reads the rows as one array.
_SEAM: Final = r"(?:\}|null)\s*,\s*[{n]"
# How a text begins that is an object or an array in JSON.
_NESTED: Final = ("{", "[")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What files state about one column, one for each row: texts, or values as a checkpoint has them."""

    minima: pl.Series
    maxima: pl.Series
    null_count: pl.Series
    records: pl.Series


def read_statistics(texts: pl.Series, paths: Sequence[Path]) -> dict[Path, Statistics]:
    """Return the statistics of columns; null for what is missing or damaged."""
    seams = texts.str.contains(_SEAM)
    parts = [
        _read_chunk(texts.slice(start, _CHUNK), paths, is_plain=not seams.slice(start, _CHUNK).any())
        for start in range(0, texts.len(), _CHUNK)
    ]
    frame = _typed(pl.concat(parts) if parts else _empty(paths))
    return {
        path: Statistics(
            minima=frame[f"minValues{index}"],
            maxima=frame[f"maxValues{index}"],
            null_count=frame[f"nullCount{index}"],
            records=frame[_RECORDS],
        )
        for index, path in enumerate(paths)
    }


def find_parsed(parsed: pl.Series, path: Path) -> Statistics | None:
    """Return what a checkpoint has of a column; None if it has not all of it."""
    records = _member(parsed, (_RECORDS,))
    minima, maxima, null_count = (_member(parsed, (kind, *path)) for kind in _KINDS)
    if records is None or null_count is None or not records.dtype.is_integer():
        return None
    if not null_count.dtype.is_integer():
        return None
    nothing = pl.repeat(None, parsed.len(), dtype=pl.Null, eager=True)
    return Statistics(
        minima=nothing if minima is None else minima,
        maxima=nothing if maxima is None else maxima,
        null_count=null_count,
        records=records,
    )


def _member(values: pl.Series, path: Path) -> pl.Series | None:
    for name in path:
        if not isinstance(values.dtype, pl.Struct) or name not in values.struct.fields:
            return None
        # By no expression, and under another name: to the library some names are patterns of names.
        values = values.struct.unnest()[name].rename(_MEMBER)
    return values


def _read_chunk(texts: pl.Series, paths: Sequence[Path], *, is_plain: bool) -> pl.DataFrame:
    shape = _shape(paths)
    try:
        # Where no row is two values, as many values as there are rows are one for each.
        stats = texts.str.json_decode(shape) if is_plain else _numbered(texts, shape)
    except (PolarsError, PanicException):
        stats = None
    if stats is None or stats.len() != texts.len():
        return _matched(texts, paths)
    columns = {_RECORDS: stats.struct.field(_RECORDS)}
    for index, path in enumerate(paths):
        for kind in _KINDS:
            found = _member(stats, (kind, *path))
            columns[f"{kind}{index}"] = _empty_column(texts.len()) if found is None else found
    return pl.DataFrame(columns)


def _numbered(texts: pl.Series, shape: pl.Struct) -> pl.Series | None:
    """Return the rows, each decoded under its number; None if they do not come out under their numbers."""
    numbered = (
        texts.alias("text")
        .to_frame()
        .select(
            pl.concat_str(
                pl.lit('{"row":'),
                pl.int_range(pl.len()),
                pl.lit(',"stats":'),
                pl.col("text").fill_null("null"),
                pl.lit("}"),
            )
        )
    )
    rows = numbered.to_series().str.json_decode(pl.Struct({"row": pl.Int64, "stats": shape}))
    return rows.struct.field("stats") if _is_counting(rows.struct.field("row"), texts.len()) else None


def _is_counting(numbers: pl.Series, count: int) -> bool:
    return numbers.equals(pl.int_range(count, eager=True), check_names=False)


def _matched(texts: pl.Series, paths: Sequence[Path]) -> pl.DataFrame:
    """Read row by row and value by value, which takes longer and leaves no row out for another."""
    columns = {_RECORDS: _match(texts, (_RECORDS,))}
    for index, path in enumerate(paths):
        for kind in _KINDS:
            columns[f"{kind}{index}"] = _match(texts, (kind, *path))
    return pl.DataFrame(columns)


def _match(texts: pl.Series, path: Path) -> pl.Series:
    if any(char in name for name in path for char in "'\\\"[]"):
        return _empty_column(texts.len())
    pattern = "$" + "".join(f"['{name}']" for name in path)
    try:
        found = texts.str.json_path_match(pattern)
    except (PolarsError, PanicException):
        return _empty_column(texts.len())
    nested = pl.any_horizontal(pl.col("text").str.starts_with(mark) for mark in _NESTED)
    return found.alias("text").to_frame().select(pl.when(~nested).then("text")).to_series()


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    counts = pl.col(f"^({_RECORDS}|nullCount[0-9]+)$")
    return frame.with_columns(counts.cast(pl.Int64, strict=False))


def _empty(paths: Sequence[Path]) -> pl.DataFrame:
    names = [f"{kind}{index}" for index in range(len(paths)) for kind in _KINDS]
    return pl.DataFrame({name: _empty_column(0) for name in (_RECORDS, *names)})


def _empty_column(count: int) -> pl.Series:
    return pl.repeat(None, count, dtype=pl.String, eager=True)


def _shape(paths: Sequence[Path]) -> pl.Struct:
    """Return the type of just the values that are wanted, each of them a text whatever it is in JSON."""
    tree: dict[str, Any] = {}
    for path in paths:
        members = tree
        for name in path[:-1]:
            members = members.setdefault(name, {})
        members[path[-1]] = None
    columns = _struct(tree)
    return pl.Struct({_RECORDS: pl.String, **dict.fromkeys(_KINDS, columns)})


def _struct(tree: Mapping[str, Any]) -> pl.Struct:
    return pl.Struct({name: pl.String() if below is None else _struct(below) for name, below in tree.items()})
