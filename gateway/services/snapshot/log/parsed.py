"""Typed statistics and partition values of a checkpoint, as the texts that writers put into commits.

A table may have its checkpoints written with typed values instead of texts.
"""

from __future__ import annotations

import json
from typing import Final

import polars as pl

from gateway.services.snapshot.log.beyond import Beyond
from gateway.services.snapshot.log.schema import TEXTS

_DATE: Final = "%Y-%m-%d"
# So many values are written at a time, however many there are of a file.
_VALUES: Final = 1024 * 1024
_SECONDS: Final = f"{_DATE}T%H:%M:%S"
# In nanoseconds: what the library makes of every time that is beyond them, whether before or after.
OUT_OF_REACH: Final = 2**63 - 1


def stats_of(parsed: pl.Series) -> pl.Series:
    """Return ``stats`` for each ``stats_parsed``: nulls left out of it; null where nothing is left."""
    columns: list[pl.Series] = []
    text = _json(parsed, columns)
    if text is None:
        return pl.repeat(None, parsed.len(), dtype=pl.String, eager=True).alias("stats")
    stats = pl.when(text != "{}").then(text).alias("stats")
    frame = pl.DataFrame(columns)
    # Some at a time: on the way to a text there is one for every member.
    some = max(1, _VALUES // len(columns))
    return pl.concat(
        [rows.select(stats) for rows in frame.iter_slices(some)] or [frame.select(stats)]
    ).to_series()


def partition_values_of(parsed: pl.Series) -> pl.Series:
    """Return ``partitionValues`` for each ``partitionValues_parsed``; raise ``Beyond`` where one is lost."""
    members = parsed.struct.unnest().get_columns() if isinstance(parsed.dtype, pl.Struct) else []
    if any(map(_is_out_of_reach, members)):
        # Left out it would be null, which is another partition.
        raise Beyond("has a time before 1677 or after 2262 for a partition value, and not as a text")
    columns: list[pl.Series] = []
    entries = [
        pl.struct(
            pl.lit(member.name).alias("key"),
            _partition_value(_column(member, columns), member.dtype).alias("value"),
        )
        for member in members
    ]
    if not entries:
        return pl.Series("partitionValues", [{}] * parsed.len(), dtype=TEXTS)
    values = pl.concat_list(entries).cast(TEXTS).alias("partitionValues")
    return pl.DataFrame(columns).select(values).to_series()


def _json(values: pl.Series, columns: list[pl.Series]) -> pl.Expr | None:
    """Return the JSON of values, null for null; None for a type that statistics do not have as text.

    What it is made of is added to the columns.
    """
    if isinstance(values.dtype, pl.Struct):
        return _object(values, columns)
    return _scalar(_column(values, columns), values.dtype)


def _column(values: pl.Series, columns: list[pl.Series]) -> pl.Expr:
    # A member that is looked up in its struct takes longer the more members that has.
    columns.append(values.alias(str(len(columns))))
    return pl.col(columns[-1].name)


def _scalar(value: pl.Expr, dtype: pl.DataType) -> pl.Expr | None:
    if dtype == pl.String:
        # Encoded as a member, as strings alone are not; then without the rest.
        member = pl.struct(value.alias("v")).struct.json_encode()
        return pl.when(value.is_not_null()).then(member.str.strip_prefix('{"v":').str.head(-1))
    if dtype == pl.Date or isinstance(dtype, pl.Datetime):
        return pl.concat_str(pl.lit('"'), _time(value, dtype), pl.lit('"'))
    if dtype.is_float():
        # JSON has no other numbers. A bound that is not there says nothing, so that no reader is misled.
        value = pl.when(value.is_finite()).then(value)
    return value.cast(pl.String) if dtype.is_numeric() or dtype == pl.Boolean else None


def _object(values: pl.Series, columns: list[pl.Series]) -> pl.Expr | None:
    value = _column(values, columns)
    members = [
        pl.concat_str(pl.lit(f"{json.dumps(member.name, ensure_ascii=False)}:"), text)
        for member in values.struct.unnest().get_columns()
        if (text := _json(member, columns)) is not None
    ]
    if not members:
        return None
    joined = pl.concat_str(members, separator=",", ignore_nulls=True)
    return pl.when(value.is_not_null()).then(pl.concat_str(pl.lit("{"), joined, pl.lit("}")))


def _partition_value(value: pl.Expr, dtype: object) -> pl.Expr:
    if dtype == pl.Date or isinstance(dtype, pl.Datetime):
        return _time(value, dtype)
    if dtype == pl.Binary:
        return value.cast(pl.String, strict=False)
    return value.cast(pl.String)


def _time(value: pl.Expr, dtype: object) -> pl.Expr:
    """Return a date or a time in ISO 8601, to the millisecond unless that loses something."""
    if not isinstance(dtype, pl.Datetime):
        return value.dt.to_string(_DATE)
    if dtype.time_unit == "ns":
        value = pl.when(value.to_physical() != OUT_OF_REACH).then(value)
    # A time in nanoseconds is one in an old encoding, which is only ever used for times in UTC.
    zone = "Z" if dtype.time_zone or dtype.time_unit == "ns" else ""
    utc = value.dt.convert_time_zone("UTC") if dtype.time_zone else value
    whole = utc.dt.microsecond() % 1000 == 0
    return (
        pl.when(whole)
        .then(utc.dt.to_string(f"{_SECONDS}%.3f{zone}"))
        .otherwise(utc.dt.to_string(f"{_SECONDS}%.6f{zone}"))
    )


def _is_out_of_reach(values: pl.Series) -> bool:
    is_old = isinstance(values.dtype, pl.Datetime) and values.dtype.time_unit == "ns"
    return is_old and (values.to_physical() == OUT_OF_REACH).any()
