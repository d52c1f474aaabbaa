"""The types that predicates compare: values of each, and how logs, SQL, JSON and DuckDB write them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

# What a log says of a column in one file: its minimum and its maximum, None for what it leaves out.
Stated = tuple[Any, Any]

_CUT = 32
_ALL_DIGITS = Context(prec=60)
_INDIA = timezone(timedelta(hours=5, minutes=30))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type; where something is written in several ways, all of them are there to choose from."""

    name: str
    # As a table's schema has it, as Spark's SQL does, and as DuckDB does.
    delta: str
    spark: str
    duckdb: str
    draw: Callable[[Random], Sequence[Any]]
    # Values that readers or writers are known to take for something else.
    odd: tuple[Any, ...] = ()
    # Another value that is hard to tell from one, where the type has such.
    near: Callable[[Any, Random], Any] = lambda value, _: value
    # Values compare as these do.
    order: Callable[[Any], Any] = lambda value: value
    # As DuckDB reads it.
    text: Callable[[Any], str] = str
    # A constant of the type, and one that becomes one beside a column of the type, in a session's zone.
    typed: Callable[[Any, str], list[str]]
    loose: Callable[[Any, str], list[str]] = lambda _, __: []
    stated: Callable[[Any, Any], list[Stated]] = lambda low, high: [(low, high)]
    partition: Callable[[Any, str], list[str]] = lambda value, _: [str(value)]
    # JSON predicates have no word for types without one.
    json: str = ""
    json_text: Callable[[Any], str] = str

    def constant(self, value: Any) -> str:
        """Return a value in DuckDB's SQL, of this very type and no wider one."""
        return f"CAST({quote(self.text(value))} AS {self.duckdb})"


def quote(text: str) -> str:
    """Return a text as DuckDB reads it, which knows no escapes."""
    return "'" + text.replace("'", "''") + "'"


def sql_text(text: str) -> str:
    """Return a text as Spark writes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def digits(number: Decimal) -> str:
    """Return what ``to_json`` of tests/oracles/predicate_tables.py writes as a number with all its digits."""
    return f"digits:{number:f}"


def _drawn(
    special: Sequence[Any], make: Callable[[Random], Any], count: int = 16
) -> Callable[[Random], list[Any]]:
    return lambda chance: [*special, *(make(chance) for _ in range(count))]


def _integer(delta: str, spark: str, bits: int, suffix: str) -> Kind:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    special = [least, least + 1, -1, 0, 1, most - 1, most]
    # Where doubles stop telling neighbours apart.
    special += [2**53, 2**53 + 1, -(2**53) - 1] if bits == 64 else []
    return Kind(
        name=delta,
        delta=delta,
        spark=spark,
        duckdb=spark,
        draw=_drawn(special, lambda chance: chance.randint(-100, 100)),
        near=lambda value, chance: min(most, max(least, value + chance.choice([-1, 0, 0, 1]))),
        typed=lambda value, _: [f"{value}{suffix}", f"{value}", f"CAST({value} AS {spark})"],
        loose=lambda value, _: [f"CAST('{value}' AS {spark})", f"+{value}" if value > 0 else f"{value}"],
        json="long" if bits == 64 else "int",
    )


def to_float(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def short_float(number: float) -> float:
    """Return the shortest decimal that is the float, as writers print it."""
    if not math.isfinite(number):
        return number
    return next(
        found for length in range(1, 18) if to_float(found := float(f"{number:.{length}g}")) == number
    )


def _spelled(number: float) -> str:
    """Return a number as Java spells one."""
    return repr(number) if math.isfinite(number) else str(_stated_number(number))


def _stated_number(number: float) -> Any:
    return number if math.isfinite(number) else str(number).replace("inf", "Infinity").replace("nan", "NaN")


def _order_number(number: float) -> tuple[int, float]:
    # Spark and DuckDB alike: NaN is itself, and above all others.
    return (1, 0.0) if math.isnan(number) else (0, number)


def _stated_doubles(low: float, high: float) -> list[Stated]:
    # A number that is not finite is a text, or left out.
    return [
        (_stated_number(low), _stated_number(high)),
        (low if math.isfinite(low) else None, high if math.isfinite(high) else None),
    ]


def _stated_floats(low: float, high: float) -> list[Stated]:
    # As a float is printed, and as the double is that it becomes.
    return [*_stated_doubles(short_float(low), short_float(high)), *_stated_doubles(low, high)]


def _double_constants(number: float, _: str) -> list[str]:
    if not math.isfinite(number):
        return [f"CAST('{_spelled(number)}' AS DOUBLE)"]
    return [f"{number!r}D", f"{number!r}D".replace("e", "E"), f"CAST('{number!r}' AS DOUBLE)"]


def _float_constants(number: float, _: str) -> list[str]:
    text = _spelled(short_float(number))
    # Spark writes its floats as texts, and did so without quotes before.
    return [
        f"CAST('{text}' AS FLOAT)",
        *([f"CAST({text} AS FLOAT)", f"{text}F"] if text[-1].isdigit() else []),
    ]


def _decimal(precision: int, scale: int, special: Sequence[str]) -> Kind:
    name = f"decimal({precision},{scale})"
    largest = Decimal(f"{10**precision - 1}E-{scale}")
    least = largest.copy_negate()
    return Kind(
        name=name,
        delta=name,
        spark=name.upper(),
        duckdb=name.upper(),
        draw=_drawn(
            [*map(Decimal, special), largest, least],
            lambda chance: Decimal(f"{chance.randint(-9999, 9999)}E-{scale}"),
        ),
        near=lambda value, chance: min(
            largest, max(least, _ALL_DIGITS.add(value, Decimal(f"{chance.choice([-1, 0, 0, 1])}E-{scale}")))
        ),
        text=lambda value: f"{value:f}",
        typed=lambda value, _: [f"{value}BD", f"CAST('{value:f}' AS {name.upper()})"],
        loose=lambda value, _: [f"{value:f}"],
        stated=lambda low, high: [(digits(low), digits(high)), (float(low), float(high))],
        partition=lambda value, _: [f"{value:f}"],
    )


_TEXTS = (
    *("", "a", "ab", "abc", "b", "é", "~", "'", 'a"b', "a\\b", "100%", "_a", "null", "NULL", "a\x00b", "?"),
    *("z" * 31, "z" * 32, "z" * 33, "z" * 40, "z" * 40 + "a", "z" * 32 + "\x7f" * 3, "z" * 32 + "é"),
    *("\U0001f600" * 16, "\U0001f600" * 17, "\U0001f600" * 33, "a" + "\U0001f600" * 20, "é" * 40),
    *(
        "\ud7ff",
        "\ue000",
        "\uffff",
        "\uffff" * 40,
        "\ufffd" * 40,
        "\U0010ffff" * 33,
        "z" * 32 + "\U0010ffff" * 8,
    ),
)
_LETTERS = "abzé~\u3042\uffff\U0001f600\U0010ffff"


def _draw_text(chance: Random) -> str:
    start = chance.choice(["", "", "z" * 31, "\U0001f600" * 15, "é" * 31])
    return start + "".join(chance.choices(_LETTERS, k=chance.randint(1, 6)))


def _near_text(text: str, chance: Random) -> str:
    return chance.choice([text, text, text[:_CUT], text + "a", text[:-1], text[:_CUT] + "\U0010ffff"])


def _cut_at(text: str) -> int:
    """Return where Spark cuts: behind 32 units of UTF-16, never within a character."""
    units = 0
    for index, char in enumerate(text):
        if units >= _CUT:
            return index
        units += 1 + (char > "\uffff")
    return len(text)


def _cut_maximum(text: str) -> str:
    """Return a text that is not below the given one, nor below what begins alike, as Delta's rules ask."""
    end = _cut_at(text)
    while text[end : end + 1] == "\U0010ffff":
        end += 1
    if end >= len(text):
        return text
    return text[:end] + ("\x7f" if text[end] < "\x7f" else "\U0010ffff")


def _stated_texts(low: str, high: str) -> list[Stated]:
    minimum = low[: _cut_at(low)]
    # Some writers cut no text, and some cut the maximum as they cut the minimum.
    return [*[(minimum, _cut_maximum(high))] * 4, (low, high), (minimum, high[: _cut_at(high)])]


def _text_kind(name: str, draw: Callable[[Random], Sequence[str]]) -> Kind:
    return Kind(
        name=name,
        delta="string",
        spark="STRING",
        duckdb="VARCHAR",
        draw=draw,
        odd=("",),
        near=_near_text,
        # As UTF-8, which is not the order of UTF-16; DuckDB compares bytes too.
        order=lambda value: value.encode(),
        typed=lambda value, _: [sql_text(value), sql_text(value), quote(value).replace("\\", "\\\\")],
        stated=_stated_texts,
        json="string",
    )


def _time(chance: Random) -> datetime:
    return datetime(2021, 1, 1, tzinfo=UTC) + timedelta(
        hours=chance.randint(-200, 200), microseconds=chance.choice([0, 1000, chance.randrange(10**6)])
    )


_TIMES = [
    datetime(*parts).replace(tzinfo=UTC)  # noqa: DTZ001
    for parts in (
        (1960, 1, 1),
        (1969, 12, 31, 23, 59, 59, 999500),
        (1969, 12, 31, 23, 59, 59, 999800),
        (1970, 1, 1),
        (2021, 1, 1, 0, 0, 0, 123000),
        (2021, 1, 1, 0, 0, 0, 123456),
        (2021, 1, 1, 0, 0, 0, 123999),
        # Where clocks in California are turned back.
        (2021, 11, 7, 8, 30),
        (2021, 11, 7, 9, 30),
        (2261, 1, 1),
    )
]


def _near_time(moment: datetime, chance: Random) -> datetime:
    return moment + chance.choice([-1, 0, 0, 0, 1, 500]) * _MICROSECOND


def _cut_time(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _local(moment: datetime, zone: str) -> str:
    """Return a time as a clock shows it, or with its zone where clocks show it twice."""
    shown = moment.astimezone(ZoneInfo(zone))
    is_plain = shown.replace(fold=0).utcoffset() == shown.replace(fold=1).utcoffset()
    return shown.replace(tzinfo=None).isoformat(sep=" ") if is_plain else moment.isoformat(sep=" ")


def _zoned(moment: datetime) -> list[str]:
    return [moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), moment.astimezone(_INDIA).isoformat(sep=" ")]


def _time_constants(moment: datetime, zone: str) -> list[str]:
    texts = [_local(moment, zone), *_zoned(moment)]
    return [f"TIMESTAMP '{text}'" for text in texts] + [
        f"CAST('{_zoned(moment)[1]}' AS TIMESTAMP)",
        f"TIMESTAMP_LTZ '{_zoned(moment)[0]}'",
        f"TIMESTAMP('{_zoned(moment)[0]}')",
    ]


def _stated_times(low: datetime, high: datetime) -> list[Stated]:
    cut = [_cut_time(low), _cut_time(high)]
    return [
        *[(_milliseconds(cut[0]), _milliseconds(cut[1]))] * 2,
        (_milliseconds(cut[0].astimezone(_INDIA)), _milliseconds(cut[1].astimezone(_INDIA))),
        (_zoned(low)[0], _zoned(high)[0]),
    ]


def _stated_local_times(low: datetime, high: datetime) -> list[Stated]:
    cut = [_cut_time(low), _cut_time(high)]
    return [
        (_milliseconds(cut[0]), _milliseconds(cut[1])),
        (_milliseconds(cut[0]).replace("T", " "), _milliseconds(cut[1]).replace("T", " ")),
        (low.isoformat(), high.isoformat()),
    ]


def _milliseconds(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json_time(moment: datetime) -> str:
    # Spark's connector cuts a constant to milliseconds, towards the epoch; rows are compared with all of it.
    cut = _EPOCH + int((moment - _EPOCH) / _MILLISECOND) * _MILLISECOND
    return cut.isoformat().replace("+00:00", "Z")


def _local_constants(moment: datetime, _: str) -> list[str]:
    text = moment.isoformat(sep=" ")
    return [f"TIMESTAMP_NTZ '{text}'", f"CAST('{text}' AS TIMESTAMP_NTZ)"]


BYTE = _integer("byte", "TINYINT", 8, "Y")
SHORT = _integer("short", "SMALLINT", 16, "S")
INTEGER = _integer("integer", "INT", 32, "")
LONG = _integer("long", "BIGINT", 64, "L")
FLOAT = Kind(
    name="float",
    delta="float",
    spark="FLOAT",
    duckdb="FLOAT",
    draw=_drawn(
        [*map(to_float, (0.0, -0.0, 1.1, 0.1, 3.4e38, 1e-45, 16777216.0)), math.nan, math.inf, -math.inf],
        lambda chance: to_float(chance.uniform(-20, 20)),
    ),
    odd=(math.nan,),
    order=_order_number,
    text=_spelled,
    typed=_float_constants,
    stated=_stated_floats,
    partition=lambda value, _: [_spelled(short_float(value))],
    json="float",
    json_text=lambda value: _spelled(short_float(value)),
)
DOUBLE = Kind(
    name="double",
    delta="double",
    spark="DOUBLE",
    duckdb="DOUBLE",
    draw=_drawn(
        [0.0, -0.0, 0.1, 0.30000000000000004, 1e-320, 2.0**53, 1e300, math.nan, math.inf, -math.inf],
        lambda chance: chance.choice([chance.uniform(-20, 20), float(chance.randint(-20, 20))]),
    ),
    near=lambda value, chance: chance.choice([value, value, math.nextafter(value, math.inf)]),
    odd=(math.nan,),
    order=_order_number,
    text=_spelled,
    typed=_double_constants,
    loose=lambda value, _: [repr(value)] if math.isfinite(value) else [],
    stated=_stated_doubles,
    partition=lambda value, _: [_spelled(value)],
    json="double",
    json_text=_spelled,
)
DECIMAL = _decimal(10, 2, ("0", "1.50", "-1.50", "12345678.91", "12345678.92", "0.01"))
LONG_DECIMAL = _decimal(
    38, 10, (*(f"1234567890123456789.012345678{digit}" for digit in "789"), "0.0000000001", "-1")
)
TEXT = _text_kind("string", _drawn(_TEXTS, _draw_text))
# Texts that a cast makes numbers or days of, and some of which it does not.
NUMERALS = _text_kind(
    "numerals",
    lambda _: ["1", "2", "10", "-3", "007", "1.5", "1.267", "300", "3000000000", "1e2", "x", " 5", "", "99"],
)
DAYS = _text_kind("days", lambda _: [f"2021-0{month}-1{month}" for month in range(1, 10)] + ["", "someday"])
BOOLEAN = Kind(
    name="boolean",
    delta="boolean",
    spark="BOOLEAN",
    duckdb="BOOLEAN",
    draw=lambda _: [True, False],
    text=lambda value: str(value).lower(),
    typed=lambda value, _: [str(value).lower(), str(value).upper()],
    # Spark states none.
    stated=lambda low, high: [(low, high), (None, None)],
    partition=lambda value, _: [str(value).lower()],
    json="bool",
    json_text=lambda value: str(value).lower(),
)
DATE = Kind(
    name="date",
    delta="date",
    spark="DATE",
    duckdb="DATE",
    draw=_drawn(
        [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
        lambda chance: date(2021, 1, 1) + timedelta(days=chance.randint(-10, 10)),
    ),
    typed=lambda value, _: [
        f"DATE '{value}'",
        f"CAST('{value}' AS DATE)",
        f"DATE('{value}')",
        f"DATE'{value}'",
    ],
    loose=lambda value, _: [f"'{value}'"],
    stated=lambda low, high: [(str(low), str(high))],
    json="date",
)
TIMESTAMP = Kind(
    name="timestamp",
    delta="timestamp",
    spark="TIMESTAMP",
    duckdb="TIMESTAMPTZ",
    draw=_drawn(_TIMES, _time),
    near=_near_time,
    text=lambda value: value.isoformat(sep=" "),
    typed=_time_constants,
    loose=lambda value, zone: [f"'{_local(value, zone)}'", f"'{_zoned(value)[0]}'"],
    stated=_stated_times,
    partition=lambda value, zone: [_zoned(value)[0], _local(value, zone)],
    json="timestamp",
    json_text=_json_time,
)
LOCAL_TIMESTAMP = Kind(
    name="timestamp_ntz",
    delta="timestamp_ntz",
    spark="TIMESTAMP_NTZ",
    duckdb="TIMESTAMP",
    draw=_drawn(
        [moment.replace(tzinfo=None) for moment in _TIMES], lambda chance: _time(chance).replace(tzinfo=None)
    ),
    near=_near_time,
    text=lambda value: value.isoformat(sep=" "),
    typed=_local_constants,
    stated=_stated_local_times,
    partition=lambda value, _: [value.isoformat(sep=" "), value.strftime("%Y-%m-%d %H:%M:%S.%f")],
)
# Of bytes a log states how many are null, and nothing else.
BINARY = Kind(
    name="binary",
    delta="binary",
    spark="BINARY",
    duckdb="BLOB",
    draw=lambda _: ["x", "y"],
    typed=lambda _, __: [],
    stated=lambda _, __: [(None, None)],
)

KINDS = (
    *(BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, DECIMAL, LONG_DECIMAL, TEXT, BOOLEAN),
    *(DATE, TIMESTAMP, LOCAL_TIMESTAMP, NUMERALS, DAYS),
)
