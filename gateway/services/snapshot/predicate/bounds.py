"""Between which values a column lies in each file, and what a cast makes of that.

Whatever is not known is null, and whatever is not exact is widened: a bound may be too far out, never too
far in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import polars as pl

from gateway.services.snapshot.log.parsed import OUT_OF_REACH
from gateway.services.snapshot.predicate.data_type import (
    DOUBLE,
    FLOAT,
    STRING,
    DataType,
    Family,
)

_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = timedelta(days=1) // _MICROSECOND
# As far as a zone may be from UTC: where a time names none, the writer's or the reader's is meant.
_ZONES: Final = timedelta(hours=18) // _MICROSECOND
MILLISECOND: Final = timedelta(milliseconds=1) // _MICROSECOND
# Sums of times below it stay within 64 bits.
_LAST_TIME: Final = 2**62
# Relative to a number: what a double loses of a longer number, and how far a float is from its decimal text.
_DOUBLE_SLACK: Final = 2.0**-50
_FLOAT_SLACK: Final = 2.0**-22
# As many digits, and as large a whole number, as a double tells from every other.
_DOUBLE_DIGITS: Final = 15
_DOUBLE_WHOLE: Final = 2.0**53
# Below it floats are spaced more widely than in proportion to themselves.
_SMALL: Final = 1e-37
_ZONED: Final = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z")
_LOCAL: Final = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")
# What writers end a text with that they have cut: the highest characters; before one, half a character.
_TIE_BREAKER: Final = r"(?s)(?:\x00.*|\??[\x{FFFD}\x{FFFF}\x{10FFFF}]*)$"
# Above every character in UTF-8.
_BEYOND: Final = b"\xff"
# So many letters of a text tell it from nearly all others, and the rest would be copied into each bound.
_MAX_LETTERS: Final = 256

_DATED: Final = frozenset({Family.DATE, Family.TIMESTAMP, Family.LOCAL_TIMESTAMP})
_WHOLE_YEAR: Final = r"^\d{4}-"

DTYPES: Final[Mapping[Family, pl.DataType]] = {
    Family.INTEGER: pl.Int64(),
    Family.NUMBER: pl.Float64(),
    Family.TEXT: pl.Binary(),
    Family.BOOLEAN: pl.Int64(),
    # Days since the epoch.
    Family.DATE: pl.Int64(),
    # Microseconds since the epoch, in UTC or in no zone.
    Family.TIMESTAMP: pl.Int64(),
    Family.LOCAL_TIMESTAMP: pl.Int64(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """One of each for every row; bounds are as ``DTYPES`` says."""

    type: DataType
    low: pl.Series
    high: pl.Series
    # Whether the column may be null in a row of the file.
    nulls: pl.Series
    # Whether it may be other than null.
    values: pl.Series
    # The values themselves, where each file has a single one and it is a text.
    texts: pl.Series | None = None
    # Whether there may be NaN beside what is within the bounds: most writers leave it out of statistics.
    nan: bool = False


def point_bounds(texts: pl.Series, data_type: DataType) -> Bounds:
    """Return the bounds of single values, as partition values and constants are written."""
    low, high = _converted(texts, data_type), _converted(texts, data_type)
    if data_type.family is Family.TIMESTAMP:
        local = _local_times(texts)
        low = low.zip_with(low.is_not_null(), local - _ZONES)
        high = high.zip_with(high.is_not_null(), local + _ZONES)
    low, high = _widened(low, high, _slack_of(data_type))
    # An empty text is null, but a reader may take one of a text column as it is.
    is_text = data_type.family is Family.TEXT
    nulls = texts.is_null() | (texts == "").fill_null(value=True)
    return Bounds(
        type=data_type,
        low=low,
        high=high,
        nulls=nulls if is_text else nulls | low.is_null(),
        values=texts.is_not_null() if is_text else texts.is_not_null() & ~nulls,
        texts=texts if is_text else None,
    )


def range_bounds(
    minima: pl.Series, maxima: pl.Series, data_type: DataType, null_count: pl.Series, records: pl.Series
) -> Bounds:
    """Return the bounds that a file's statistics state."""
    low, high = _low_of(minima, data_type), _high_of(maxima, data_type)
    low, high = _widened(low, high, _slack_of(data_type))
    return Bounds(
        type=data_type,
        low=low,
        high=high,
        # Both also hold where deleted rows are still counted: all of the file's rows are meant then.
        nulls=(null_count != 0).fill_null(value=True),
        values=(null_count != records).fill_null(value=True),
        nan=data_type in {FLOAT, DOUBLE},
    )


def reckoned(
    low: pl.Series, high: pl.Series, data_type: DataType, *, is_point: bool
) -> tuple[pl.Series, pl.Series]:
    """Return bounds that were read elsewhere, as ``DTYPES`` says, with the room that those here have."""
    if not is_point and data_type.family in {Family.TIMESTAMP, Family.LOCAL_TIMESTAMP}:
        low, high = low - MILLISECOND, high + MILLISECOND
    return _widened(low, high, _slack_of(data_type))


def cast_all(bounds: Bounds | None, targets: Iterable[DataType]) -> Bounds | None:
    """Return the bounds of what the values are as each of the types in turn; None when it cannot be told."""
    for target in targets:
        bounds = None if bounds is None else _cast(bounds, target)
    return bounds


def _cast(bounds: Bounds, target: DataType) -> Bounds | None:
    if bounds.type == target:
        return bounds
    if bounds.type.family is Family.TEXT:
        return _parsed(bounds, target)
    cast = _CASTS.get((bounds.type.family, target.family))
    return None if cast is None else cast(bounds, target)


def _parsed(bounds: Bounds, target: DataType) -> Bounds | None:
    # A decimal is rounded to its digits, or null where it has too few.
    if bounds.texts is None or target.name == "decimal":
        return None
    texts = bounds.texts
    if target.family in _DATED:
        # Readers differ in what they take a short year for.
        none = pl.repeat(None, texts.len(), dtype=pl.String, eager=True)
        texts = texts.zip_with(texts.str.contains(_WHOLE_YEAR), none)
    found = point_bounds(texts, target)
    if target.family is Family.INTEGER:
        found = _integers(found, target)
    # A text that is not read here may still be read by others.
    unread = bounds.texts.is_not_null() & found.low.is_null()
    return replace(found, nulls=found.nulls | unread, values=found.values | unread)


def _integers(bounds: Bounds, target: DataType) -> Bounds:
    fits = (bounds.low >= -target.largest - 1) & (bounds.high <= target.largest)
    if fits.all():
        return replace(bounds, type=target)
    # What does not fit becomes another number, null, or an error.
    none = pl.repeat(None, fits.len(), dtype=pl.Int64, eager=True)
    return replace(
        bounds,
        type=target,
        low=bounds.low.zip_with(fits.fill_null(value=False), none),
        high=bounds.high.zip_with(fits.fill_null(value=False), none),
        nulls=bounds.nulls | ~fits.fill_null(value=False),
    )


def _numbers(bounds: Bounds, target: DataType) -> Bounds | None:
    if target.name == "decimal" and not _is_widening(bounds.type, target):
        return None
    low, high = bounds.low.cast(pl.Float64), bounds.high.cast(pl.Float64)
    if bounds.type.family is Family.INTEGER:
        low, high = _widened(low, high, _DOUBLE_SLACK, above=_DOUBLE_WHOLE)
    low, high = _widened(low, high, _FLOAT_SLACK if target == FLOAT else 0)
    return replace(bounds, type=target, low=low, high=high)


def _is_widening(source: DataType, target: DataType) -> bool:
    if source.name in {"float", "double"}:
        return False
    return target.scale >= source.scale and target.whole_digits >= source.whole_digits


def _dates_to_times(bounds: Bounds, target: DataType) -> Bounds:
    zones = _ZONES if target.family is Family.TIMESTAMP else 0
    low, high = (_within(days, _LAST_TIME // _DAY) for days in (bounds.low, bounds.high))
    return replace(bounds, type=target, low=low * _DAY - zones, high=high * _DAY + zones)


def _times_to_dates(bounds: Bounds, target: DataType) -> Bounds:
    zones = _ZONES if bounds.type.family is Family.TIMESTAMP else 0
    return replace(bounds, type=target, low=(bounds.low - zones) // _DAY, high=(bounds.high + zones) // _DAY)


def _times(bounds: Bounds, target: DataType) -> Bounds:
    return replace(bounds, type=target, low=bounds.low - _ZONES, high=bounds.high + _ZONES)


_CASTS: Final[Mapping[tuple[Family, Family], Callable[[Bounds, DataType], Bounds | None]]] = {
    (Family.INTEGER, Family.INTEGER): _integers,
    (Family.INTEGER, Family.NUMBER): _numbers,
    (Family.NUMBER, Family.NUMBER): _numbers,
    (Family.DATE, Family.TIMESTAMP): _dates_to_times,
    (Family.DATE, Family.LOCAL_TIMESTAMP): _dates_to_times,
    (Family.TIMESTAMP, Family.DATE): _times_to_dates,
    (Family.LOCAL_TIMESTAMP, Family.DATE): _times_to_dates,
    (Family.TIMESTAMP, Family.LOCAL_TIMESTAMP): _times,
    (Family.LOCAL_TIMESTAMP, Family.TIMESTAMP): _times,
}


def _low_of(minima: pl.Series, data_type: DataType) -> pl.Series:
    if data_type.family is Family.TEXT and minima.dtype == pl.String:
        # The beginning of a text is not above it.
        minima = _cut(minima)
    found = _converted(minima, data_type)
    if data_type.family not in {Family.TIMESTAMP, Family.LOCAL_TIMESTAMP}:
        return found
    if data_type.family is Family.TIMESTAMP and minima.dtype == pl.String and found.has_nulls():
        found = found.zip_with(found.is_not_null(), _local_times(minima) - _ZONES)
    return found - MILLISECOND


def _high_of(maxima: pl.Series, data_type: DataType) -> pl.Series:
    if data_type.family is Family.TEXT:
        return _beyond(maxima)
    found = _converted(maxima, data_type)
    if data_type.family not in {Family.TIMESTAMP, Family.LOCAL_TIMESTAMP}:
        return found
    if data_type.family is Family.TIMESTAMP and maxima.dtype == pl.String and found.has_nulls():
        found = found.zip_with(found.is_not_null(), _local_times(maxima) + _ZONES)
    # Times are cut to milliseconds.
    return found + MILLISECOND


def _beyond(maxima: pl.Series) -> pl.Series:
    """Return what is above every text that has the given one for its beginning: a maximum may be cut."""
    if maxima.dtype != pl.String:
        return _none(maxima.len(), STRING)
    return _cut(maxima).str.replace(_TIE_BREAKER, "").cast(pl.Binary) + pl.Series([_BEYOND])


def _cut(texts: pl.Series) -> pl.Series:
    longest = texts.str.len_bytes().max()
    is_long = isinstance(longest, int) and longest > _MAX_LETTERS
    return texts.str.head(_MAX_LETTERS) if is_long else texts


def _converted(values: pl.Series, data_type: DataType) -> pl.Series:
    """Return texts, or the values of a checkpoint, as they are held; null for what is not of the type."""
    family = data_type.family
    if values.dtype == pl.String:
        return _READERS[family](values)
    if not _is_of(values.dtype, family):
        return _none(values.len(), data_type)
    if family in {Family.TIMESTAMP, Family.LOCAL_TIMESTAMP}:
        times = _reached(values).cast(pl.Datetime("us", getattr(values.dtype, "time_zone", None)))
        return _within(times.cast(pl.Int64), _LAST_TIME)
    if family is Family.DATE:
        values = values.cast(pl.Int32)
    if values.dtype == pl.Decimal:
        # By its digits: a quotient of two numbers may be off by a little.
        values = values.cast(pl.String)
    return values.cast(DTYPES[family], strict=False)


def _reached(times: pl.Series) -> pl.Series:
    """Return null for times that a checkpoint has and nanoseconds cannot reach."""
    if not isinstance(times.dtype, pl.Datetime) or times.dtype.time_unit != "ns":
        return times
    none = pl.repeat(None, times.len(), dtype=times.dtype, eager=True)
    return times.zip_with((times.to_physical() != OUT_OF_REACH).fill_null(value=False), none)


def _is_of(dtype: pl.DataType, family: Family) -> bool:
    if family is Family.NUMBER:
        return dtype.is_numeric()
    if family is Family.INTEGER:
        return dtype.is_integer()
    return {Family.BOOLEAN: pl.Boolean, Family.DATE: pl.Date}.get(family, pl.Datetime) == dtype


def _none(count: int, data_type: DataType) -> pl.Series:
    return pl.repeat(None, count, dtype=DTYPES[data_type.family], eager=True)


def _slack_of(data_type: DataType) -> float | None:
    """Return what the numbers of a type may lose when they are read; None for what is no such number."""
    if data_type.family is not Family.NUMBER:
        return None
    if data_type == FLOAT:
        return _FLOAT_SLACK
    return _DOUBLE_SLACK if data_type.precision > _DOUBLE_DIGITS else 0


def _widened(
    low: pl.Series, high: pl.Series, slack: float | None, above: float = 0
) -> tuple[pl.Series, pl.Series]:
    """Leave room for what numbers above a size have lost; what is not finite is no bound."""
    if slack is None:
        return low, high
    frame = pl.DataFrame({"low": low, "high": high})
    return (
        frame.select(_finite(pl.col("low") - _room(pl.col("low"), slack, above))).to_series(),
        frame.select(_finite(pl.col("high") + _room(pl.col("high"), slack, above))).to_series(),
    )


def _room(number: pl.Expr, slack: float, above: float) -> pl.Expr:
    size = number.abs()
    if slack == _FLOAT_SLACK:
        return size * slack + pl.when((size > 0) & (size < _SMALL)).then(_SMALL).otherwise(0.0)
    return pl.when(size >= above).then(size * slack).otherwise(0.0)


def _finite(number: pl.Expr) -> pl.Expr:
    return pl.when(number.is_finite()).then(number)


def _within(numbers: pl.Series, limit: int) -> pl.Series:
    """Return the numbers that can be reckoned with further."""
    none = pl.repeat(None, numbers.len(), dtype=pl.Int64, eager=True)
    return numbers.zip_with(numbers.is_between(-limit, limit).fill_null(value=False), none)


def _read_times(texts: pl.Series) -> pl.Series:
    return _first(texts, _ZONED, "UTC")


def _local_times(texts: pl.Series) -> pl.Series:
    found = _first(texts, _LOCAL, None)
    if not found.has_nulls():
        return found
    return found.zip_with(found.is_not_null(), _read_dates(texts) * _DAY)


def _first(texts: pl.Series, formats: tuple[str, ...], zone: str | None) -> pl.Series:
    """Return what the first format reads that reads anything of a text."""
    found = pl.repeat(None, texts.len(), dtype=pl.Int64, eager=True)
    for pattern in formats:
        if found.null_count() > texts.null_count():
            read = texts.str.to_datetime(pattern, time_unit="us", time_zone=zone, strict=False)
            found = found.zip_with(found.is_not_null(), _within(read.cast(pl.Int64), _LAST_TIME))
    return found


def _read_dates(texts: pl.Series) -> pl.Series:
    return texts.str.to_date("%Y-%m-%d", strict=False).cast(pl.Int32).cast(pl.Int64)


def _read_truths(texts: pl.Series) -> pl.Series:
    return texts.replace_strict({"true": 1, "false": 0}, default=None, return_dtype=pl.Int64)


_READERS: Final[Mapping[Family, Callable[[pl.Series], pl.Series]]] = {
    Family.INTEGER: lambda texts: texts.cast(pl.Int64, strict=False),
    Family.NUMBER: lambda texts: texts.cast(pl.Float64, strict=False),
    Family.TEXT: lambda texts: texts.cast(pl.Binary),
    Family.BOOLEAN: _read_truths,
    Family.DATE: _read_dates,
    Family.TIMESTAMP: _read_times,
    Family.LOCAL_TIMESTAMP: lambda texts: _first(texts, _LOCAL, None),
}
