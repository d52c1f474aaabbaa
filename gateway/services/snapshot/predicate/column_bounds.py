"""The bounds of a table's columns in its files: from partition values, or from statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from gateway.services.snapshot.predicate.bounds import Bounds, point_bounds, range_bounds
from gateway.services.snapshot.predicate.data_type import DOUBLE, FLOAT
from gateway.services.snapshot.predicate.statistics import Path, Statistics, find_parsed, read_statistics
from gateway.services.snapshot.predicate.table_schema import Field
from gateway.services.snapshot.state.files import Files


def find_bounds(files: Files, fields: Sequence[Field]) -> dict[Field, Bounds]:
    """Return the bounds of columns for all rows, made at the first time."""

    def make(missing: Sequence[Field], offset: int, length: int) -> Mapping[Field, pl.DataFrame]:
        parsed = None if files.parsed is None else files.parsed.slice(offset, length)
        return _made(files.frame.slice(offset, length), parsed, missing)

    made = files.columns.get(fields, files.height, make)
    return {field: _bounds_of(field, frame) for field, frame in made.items()}


def find_some_bounds(files: Files, fields: Sequence[Field], wanted: pl.Series) -> dict[Field, Bounds]:
    """Return the bounds of columns for the wanted rows alone; nothing is kept."""
    parsed = None if files.parsed is None else files.parsed.filter(wanted)
    made = _made(files.frame.filter(wanted), parsed, fields)
    return {field: _bounds_of(field, frame) for field, frame in made.items()}


def _bounds_of(field: Field, frame: pl.DataFrame) -> Bounds:
    return Bounds(
        type=field.type,
        low=frame["low"],
        high=frame["high"],
        nulls=frame["nulls"],
        values=frame["values"],
        texts=frame["texts"] if "texts" in frame.columns else None,
        nan=not field.partition and field.type in {FLOAT, DOUBLE},
    )


def _made(
    frame: pl.DataFrame, parsed: pl.Series | None, fields: Sequence[Field]
) -> dict[Field, pl.DataFrame]:
    wanted = [field for field in fields if not field.partition]
    found = _ranges(frame["stats"], parsed, wanted) if wanted else {}
    for field in fields:
        if field.partition:
            values = frame["partitionValues"].map.get(field.path[0])
            found[field] = point_bounds(values, field.type)
    return {field: _framed(bounds) for field, bounds in found.items()}


def _framed(bounds: Bounds) -> pl.DataFrame:
    columns = {"low": bounds.low, "high": bounds.high, "nulls": bounds.nulls, "values": bounds.values}
    return pl.DataFrame(columns if bounds.texts is None else {**columns, "texts": bounds.texts})


def _ranges(texts: pl.Series, parsed: pl.Series | None, fields: Sequence[Field]) -> dict[Field, Bounds]:
    has_parsed = _parsed_rows(parsed, texts.len())
    if parsed is None or not has_parsed.any():
        return _read(texts, fields)
    if has_parsed.all():
        found = {field: find_parsed(parsed, field.path) for field in fields}
        rest = _read(texts, [field for field, statistics in found.items() if statistics is None])
        known = {field: _range(field, stats) for field, stats in found.items() if stats is not None}
        return {**known, **rest}
    return _merged(texts, parsed, fields, has_parsed)


def _merged(
    texts: pl.Series, parsed: pl.Series, fields: Sequence[Field], has_parsed: pl.Series
) -> dict[Field, Bounds]:
    """Return the bounds of rows of which some have parsed statistics and others have not."""
    order = pl.concat([has_parsed.arg_true(), (~has_parsed).arg_true()]).arg_sort()
    ready = _ranges(texts.filter(has_parsed), parsed.filter(has_parsed), fields)
    rest = _read(texts.filter(~has_parsed), fields)
    joined = {field: pl.concat([_framed(ready[field]), _framed(rest[field])])[order] for field in fields}
    return {field: _bounds_of(field, frame) for field, frame in joined.items()}


def _parsed_rows(parsed: pl.Series | None, height: int) -> pl.Series:
    if parsed is None or not isinstance(parsed.dtype, pl.Struct) or "numRecords" not in parsed.struct.fields:
        return pl.repeat(value=False, n=height, dtype=pl.Boolean, eager=True)
    return parsed.struct.field("numRecords").is_not_null()


def _read(texts: pl.Series, fields: Sequence[Field]) -> dict[Field, Bounds]:
    if not fields:
        return {}
    paths: list[Path] = list(dict.fromkeys(field.path for field in fields))
    found = read_statistics(texts, paths)
    return {field: _range(field, found[field.path]) for field in fields}


def _range(field: Field, found: Statistics) -> Bounds:
    return range_bounds(found.minima, found.maxima, field.type, found.null_count, found.records)
