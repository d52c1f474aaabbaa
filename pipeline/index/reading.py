"""Texts of the log as values, only where every reader makes the same of them.

What is not certain is left to the text itself: a bound may be unknown, never too far in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sf

from pipeline.index.columns import Family

# The end of a text: to Java a dollar also stands before a line's end that comes last.
_END: Final = r"\z"
# Up to 18 digits fit 64 bits, whatever they are.
_WHOLE: Final = f"^-?[0-9]{{1,18}}{_END}"
_NUMBER: Final = rf"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{{1,3}})?{_END}"
_DATE: Final = f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{_END}"
_TIME: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_LOCAL: Final = _TIME + _END
_ZONED: Final = f"{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}}){_END}"
_PATTERNS: Final = {
    Family.INTEGER: _WHOLE,
    Family.NUMBER: _NUMBER,
    Family.BOOLEAN: f"^(true|false){_END}",
    Family.DATE: _DATE,
    Family.TIMESTAMP: _ZONED,
    Family.LOCAL_TIMESTAMP: _LOCAL,
}
_TYPES: Final[Mapping[Family, str]] = {
    Family.INTEGER: "bigint",
    Family.NUMBER: "double",
    Family.TEXT: "string",
    Family.BOOLEAN: "boolean",
    Family.DATE: "date",
    Family.TIMESTAMP: "timestamp",
    Family.LOCAL_TIMESTAMP: "timestamp_ntz",
}
# Beyond it a number is next to infinite, which is no bound.
_LARGEST: Final = 1e300
# As far as a zone may be from UTC: where a time of a partition names none, any may be meant.
_ZONES: Final = 18 * 3600 * 1_000_000
_DAY: Final = 24 * 3600 * 1_000_000
# So many letters of a text are compared, and what writers end one with that they have cut is left out.
_LETTERS: Final = 256
_TIES: Final = "[\\x00?\\x{FFFD}\\x{FFFF}\\x{10FFFF}]"
_TIE_BREAKER: Final = "(?s)(?:\\x00.*|\\??[\\x{FFFD}\\x{FFFF}\\x{10FFFF}]*)" + _END


def value_of(text: Column, family: Family) -> Column:
    """Return the value that a text of statistics stands for; null where that is not certain."""
    if family is Family.TEXT:
        # An object or a list in the place of a text.
        return sf.when(~text.rlike(r"^[{\[]"), text)
    value = sf.when(text.rlike(_PATTERNS[family]), text).try_cast(_TYPES[family])
    return sf.when(sf.abs(value) < _LARGEST, value) if family is Family.NUMBER else value


def count_of(text: Column) -> Column:
    return sf.when(text.rlike(_WHOLE), text).try_cast("bigint")


def low_of(value: Column, family: Family) -> Column:
    """Return the lower bound that a minimum is, as it is held."""
    if family is Family.TEXT:
        return sf.encode(sf.substring(value, 1, _LETTERS), "UTF-8")
    return _held(value, family)


def high_of(value: Column, family: Family) -> Column:
    """Return the upper bound that a maximum is: of a text, above all that begin with it."""
    if family is Family.TEXT:
        cut = sf.substring(value, 1, _LETTERS)
        # Hardly any has one of these, and to find that out takes far less than to leave it out.
        cut = sf.when(cut.rlike(_TIES), sf.regexp_replace(cut, _TIE_BREAKER, "")).otherwise(cut)
        return sf.concat(sf.encode(cut, "UTF-8"), sf.unhex(sf.lit("FF")))
    return _held(value, family)


def point_of(text: Column, family: Family) -> tuple[Column, Column]:
    """Return the bounds of a partition's value, which is not null; null where they are not certain."""
    if family is Family.TEXT:
        whole = sf.encode(text, "UTF-8")
        return whole, whole
    exact = _held(value_of(text, family), family)
    if family is not Family.TIMESTAMP:
        return exact, exact
    local = sf.coalesce(
        _held(value_of(text, Family.LOCAL_TIMESTAMP), Family.LOCAL_TIMESTAMP),
        _held(value_of(text, Family.DATE), Family.DATE) * _DAY,
    )
    return sf.coalesce(exact, local - _ZONES), sf.coalesce(exact, local + _ZONES)


def _held(value: Column, family: Family) -> Column:
    """Return a value as bounds are held: whole numbers but for those that are none."""
    if family is Family.DATE:
        return sf.unix_date(value).cast("bigint")
    if family is Family.TIMESTAMP:
        return sf.unix_micros(value)
    if family is Family.LOCAL_TIMESTAMP:
        # The session's zone is UTC.
        return sf.unix_micros(value.cast("timestamp"))
    return value.cast("bigint") if family is Family.BOOLEAN else value
