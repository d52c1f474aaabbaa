"""On random tables and random predicates, no file that holds a matching row is left out.

The oracle is written for this test alone: it evaluates predicates on the rows themselves, by the rules of SQL
for nulls and of Spark for NaN, zeros, texts and zones.
"""

# ruff: noqa: DTZ001 (times without a zone are a subject here)
from __future__ import annotations

import itertools
import json
import logging
import math
import random
import re
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import each_case
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.predicate.tables import column, files_of, kept_by, metadata_with
from tests.unit.services.snapshot.predicate.tables import struct as struct_type

pytestmark = pytest.mark.slow

_LOG = logging.getLogger(__name__)
_HOUR = timedelta(hours=1)
_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)


def to_float(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def short_float(number: float) -> float:
    """Return the shortest decimal that is the float, as writers print it."""
    return next(
        found for digits in range(1, 18) if to_float(found := float(f"{number:.{digits}g}")) == number
    )


_TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "b",
    "é",
    "z" * 31,
    "z" * 40,
    "z" * 40 + "a",
    "\U0001f600" * 33,
    "~",
    "'",
    "a\\b",
    "\uffff",
]
_DOUBLES = [0.0, -0.0, 1.5, -1.5, 1e-40, 2.0**53, 1e300, math.nan, math.inf, -math.inf, 0.1]
_LONGS = [-(2**63), -(2**31), -1, 0, 1, 5, 2**31, 2**53, 2**53 + 1, 2**63 - 1]
_DECIMALS = [Decimal(text) for text in ("0", "1.50", "-1.50", "12345678.91", "12345678.92", "0.01")]
_LARGE = [
    Decimal(f"{prefix}.{end}") for prefix in ("1234567890123456789", "-1") for end in ("01", "02", "03")
]
_DATES = [date(2021, 1, 1), date(2021, 1, 2), date(1969, 12, 31), date(9999, 12, 31), date(1, 1, 1)]
_TIMES = [
    datetime(2021, 1, 1, 0, 0, 0, 123456),
    datetime(2021, 1, 1, 0, 0, 0, 123999),
    datetime(2021, 1, 1, 0, 0, 0, 123000),
    datetime(2021, 1, 1, 12),
    datetime(2021, 1, 2, 3),
    datetime(1969, 12, 31, 23, 59, 59, 999500),
    datetime(1969, 12, 31, 23, 59, 59, 999800),
    datetime(1960, 1, 1),
]


@dataclass(frozen=True)
class Kind:
    """A type: its values, how a log and predicates write them, and how they compare."""

    type: str
    values: list[Any]
    to_partition: Callable[[Any], str]
    to_stat: Callable[[Any], Any]
    to_sql: Callable[[Any], str]
    json_type: str = ""
    to_json: Callable[[Any], str] = str
    order: Callable[[Any], Any] = lambda value: value


def order_number(number: float) -> tuple[int, float]:
    return (1, 0.0) if isinstance(number, float) and math.isnan(number) else (0, number)


def sql_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def double_stat(number: float) -> Any:
    return number if math.isfinite(number) else str(number).replace("inf", "Infinity").replace("nan", "NaN")


def sql_double(number: float) -> str:
    return f"{number!r}D" if math.isfinite(number) else f"CAST('{double_stat(number)}' AS DOUBLE)"


def cut_time(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


KINDS = [
    Kind("long", _LONGS, str, int, lambda v: f"{v}L", "long"),
    Kind("integer", [-(2**31), -1, 0, 1, 7, 2**31 - 1], str, int, str, "int"),
    Kind(
        "double",
        _DOUBLES,
        lambda v: str(double_stat(v)),
        double_stat,
        sql_double,
        "double",
        order=order_number,
    ),
    Kind(
        "float",
        [to_float(v) for v in (0.0, -0.0, 1.1, -1.1, 3.4e38, 1e-45, 16777217.0)] + [math.nan],
        lambda v: str(double_stat(v if math.isnan(v) else short_float(v))),
        lambda v: double_stat(v if math.isnan(v) else short_float(v)),
        lambda v: f"CAST({v!r} AS FLOAT)" if math.isfinite(v) else "CAST('NaN' AS FLOAT)",
        "float",
        lambda v: str(double_stat(v if math.isnan(v) else short_float(v))),
        order=order_number,
    ),
    Kind("decimal(10,2)", _DECIMALS, str, float, lambda v: f"{v}BD"),
    Kind("decimal(38,2)", _LARGE, str, lambda v: f"digits:{v}", lambda v: f"{v}BD"),
    Kind("string", _TEXTS, str, str, sql_text, "string", order=lambda v: v.encode()),
    Kind(
        "boolean",
        [True, False],
        lambda v: str(v).lower(),
        bool,
        lambda v: str(v).lower(),
        "bool",
        lambda v: str(v).lower(),
    ),
    Kind("date", _DATES, str, str, lambda v: f"DATE '{v}'", "date"),
    Kind(
        "timestamp",
        _TIMES,
        lambda v: v.isoformat() + "Z",
        lambda v: cut_time(v).isoformat(timespec="milliseconds") + "Z",
        lambda v: f"TIMESTAMP '{v.isoformat()}Z'",
        "timestamp",
        # As Spark's connector does: to milliseconds, towards the epoch.
        lambda v: (_EPOCH + int((v - _EPOCH) / _MILLISECOND) * _MILLISECOND).isoformat() + "Z",
    ),
    Kind(
        "timestamp_ntz",
        _TIMES,
        lambda v: v.isoformat(sep=" "),
        lambda v: cut_time(v).isoformat(timespec="milliseconds"),
        lambda v: f"TIMESTAMP_NTZ '{v.isoformat(sep=' ')}'",
    ),
]


@dataclass(frozen=True)
class File:
    rows: list[dict[str, Any]]
    deleted: list[dict[str, Any]]
    partition: dict[str, str | None]
    stats: str | None


def cut_max(text: str) -> str:
    if len(text) <= 32:
        return text
    return text[:32] + ("\uffff" if text[32] <= "\uffff" else "\U0010ffff")


def make_statistics(chance, kind, values):
    """Return minimum, maximum and count of nulls, as one writer or another states them."""
    present = [value for value in values if value is not None]
    ignores_nan = chance.random() < 0.5
    compared = [v for v in present if not (ignores_nan and isinstance(v, float) and math.isnan(v))]
    found: dict[str, Any] = {"nullCount": len(values) - len(present)}
    if compared:
        low, high = min(compared, key=kind.order), max(compared, key=kind.order)
        if kind.type == "string":
            # Some cut a maximum and leave it at that.
            cut = high[:32] if chance.random() < 0.3 else cut_max(high)
            found["minValues"], found["maxValues"] = low[:32], cut
        else:
            found["minValues"], found["maxValues"] = kind.to_stat(low), kind.to_stat(high)
    missing = chance.choice(["", "", "", "", "", "", "minValues", "maxValues", "nullCount"])
    return {name: value for name, value in found.items() if name != missing}


def make_file(chance, data, partition):
    def value_of(kind):
        return None if chance.random() < 0.2 else chance.choice(kind.values)

    def make_row():
        return {name: value_of(kind) for name, kind in data.items()}

    fixed = {name: value_of(kind) for name, kind in partition.items()}
    rows = [make_row() | fixed for _ in range(chance.choice([1, 1, 2, 3]))]
    deleted = [make_row() | fixed for _ in range(chance.choice([0, 0, 1]))]
    partition_values = {
        name: None if fixed[name] is None else kind.to_partition(fixed[name])
        for name, kind in partition.items()
    }
    stats: dict[str, Any] = {"numRecords": len(rows) + len(deleted), "tightBounds": not deleted}
    for name, kind in data.items():
        stated = make_statistics(chance, kind, [row[name] for row in rows + deleted])
        for statistic, value in stated.items():
            _put(stats.setdefault(statistic, {}), name.split("."), value)
    # A decimal has more digits than a float, and JSON has all of them.
    text = re.sub(r'"digits:([^"]*)"', r"\1", json.dumps(stats, ensure_ascii=chance.random() < 0.5))
    broken = chance.choice([None, "", "{", "null", "{},{}"])
    return File(rows, deleted, partition_values, broken if chance.random() < 0.05 else text)


def _put(tree, path, value):
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


@dataclass(frozen=True)
class Predicate:
    sql: str
    # The same for JSON; None where JSON has no word for it.
    tree: Any
    # True, False or None, for a row.
    holds: Callable[[dict[str, Any]], bool | None]


def _ordered(kind, left, right, operator):
    left, right = kind.order(left), kind.order(right)
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


_OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
_JSON_OPS = {
    "=": "equal",
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
}


def _leaves(name, kind, value=None):
    found = {"op": "column", "name": name, "valueType": kind.json_type}
    if value is None:
        return [found]
    return [found, {"op": "literal", "value": kind.to_json(value), "valueType": kind.json_type}]


def compared(name, kind, operator, value):
    sql = f"({name} {operator} {kind.to_sql(value)})"
    tree = None
    if kind.json_type:
        base = {"op": _JSON_OPS.get(operator, "equal"), "children": _leaves(name, kind, value)}
        tree = {"op": "not", "children": [base]} if operator == "<>" else base
    return Predicate(
        sql, tree, lambda row: None if row[name] is None else _ordered(kind, row[name], value, operator)
    )


def nulled(name, kind):
    tree = {"op": "isNull", "children": _leaves(name, kind)} if kind.json_type else None
    return Predicate(f"({name} IS NULL)", tree, lambda row: row[name] is None)


def listed(name, kind, values):
    trees = [{"op": "equal", "children": _leaves(name, kind, value)} for value in values]
    return Predicate(
        f"({name} IN ({', '.join(map(kind.to_sql, values))}))",
        {"op": "or", "children": trees} if kind.json_type else None,
        lambda row: None if row[name] is None else any(_ordered(kind, row[name], v, "=") for v in values),
    )


def ranged(name, kind, low, high):
    def holds(row):
        if row[name] is None:
            return None
        return _ordered(kind, row[name], low, ">=") and _ordered(kind, row[name], high, "<=")

    return Predicate(f"{name} BETWEEN {kind.to_sql(low)} AND {kind.to_sql(high)}", None, holds)


def same(name, kind, value):
    return Predicate(
        f"({name} <=> {kind.to_sql(value)})",
        None,
        lambda row: row[name] is not None and _ordered(kind, row[name], value, "="),
    )


def prefixed(name, prefix):
    return Predicate(
        f"startswith({name}, {sql_text(prefix)})",
        None,
        lambda row: None if row[name] is None else row[name].startswith(prefix),
    )


def make_leaf(chance, columns):
    name, kind = chance.choice(sorted(columns.items(), key=lambda item: item[0]))
    value, other = chance.choice(kind.values), chance.choice(kind.values)
    choices = [
        lambda: compared(name, kind, chance.choice(_OPERATORS), value),
        lambda: compared(name, kind, chance.choice(_OPERATORS), value),
        lambda: nulled(name, kind),
        lambda: listed(name, kind, [value, other]),
        lambda: ranged(name, kind, value, other),
        lambda: same(name, kind, value),
    ]
    if kind.type == "string":
        choices.append(lambda: prefixed(name, chance.choice(["a", "z", "z" * 33, "é"])))
    return chance.choice(choices)()


def make_predicate(chance, columns, depth=3):
    if depth == 0 or chance.random() < 0.3:
        return make_leaf(chance, columns)
    children = [make_predicate(chance, columns, depth - 1) for _ in range(2)]
    return _joined(chance.choice(["and", "and", "or", "not"]), children)


def _and(left, right):
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _not(value):
    return None if value is None else not value


def _joined(word, children):
    left, right = children
    trees = [child.tree for child in children]
    if word == "not":
        tree = None if left.tree is None else {"op": "not", "children": [left.tree]}
        return Predicate(f"(NOT ({left.sql}))", tree, lambda row: _not(left.holds(row)))
    tree = None if None in trees else {"op": word, "children": trees}
    sql = f"(({left.sql}) {word.upper()} ({right.sql}))"
    if word == "and":
        return Predicate(sql, tree, lambda row: _and(left.holds(row), right.holds(row)))
    return Predicate(sql, tree, lambda row: _not(_and(_not(left.holds(row)), _not(right.holds(row)))))


def _metadata(data, partition):
    nested = struct_type(column("x", data["s.x"].type))
    return metadata_with(
        *(column(name, kind.type) for name, kind in data.items() if "." not in name),
        column("s", nested),
        *(column(name, kind.type) for name, kind in partition.items()),
        partitions=tuple(partition),
    )


def _rows(file, partition):
    """Return the live rows; an empty text is null as the log has it, and itself as some readers take it."""
    for row in file.rows:
        yield row
        for name in partition:
            if row[name] == "":
                yield row | {name: None}


def check(predicates, data, partition, files):
    """Assert that nothing is lost; return how many files have no match, and how many are left out."""
    metadata = _metadata(data, partition)
    table = files_of(*(file.stats for file in files), partitions=[file.partition for file in files])
    counts: Counter[str] = Counter()
    for predicate in predicates:
        matching = [any(predicate.holds(row) for row in _rows(file, partition)) for file in files]
        asked: list[tuple[tuple[str, ...], Any]] = [((predicate.sql,), "")]
        if predicate.tree is not None:
            asked.append(((), predicate.tree))
        for sql, tree in asked:
            kept = kept_by(table, metadata, *sql, predicate=tree)
            lost = [index for index, matches in enumerate(matching) if matches and not kept[index]]
            assert not lost, (sql or tree, [files[index] for index in lost])
            counts["left out"] += len(kept) - sum(kept)
            counts["without a match"] += len(matching) - sum(matching)
    return counts


@each_case("kind", KINDS, ids=lambda kind: kind.type)
def test_no_file_that_holds_a_matching_row_is_left_out_by_a_comparison(kind):
    chance = random.Random(kind.type)
    data, partition = {"c0": kind, "c1": kind, "s.x": kind}, {"p": kind}
    files = [make_file(chance, data, partition) for _ in range(120)]
    predicates = [
        compared(name, kind, operator, value)
        for name in ("c0", "s.x", "p")
        for operator in _OPERATORS
        for value in kind.values
    ]
    predicates += [nulled(name, kind) for name in ("c0", "s.x", "p")]
    predicates += [make_leaf(chance, data | partition) for _ in range(30)]

    counts = check(predicates, data, partition, files)

    rate = counts["left out"] / counts["without a match"]
    _LOG.info("%s: %.0f %% of the files without a match are left out", kind.type, 100 * rate)
    # Leaving out nothing would never be wrong.
    assert rate > 0.3


@settings(max_examples=examples(0.6), suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(KINDS), min_size=4, max_size=4))
def test_no_file_that_holds_a_matching_row_is_left_out_by_any_predicate(chance, kinds):
    data, partition = dict(zip(["c0", "c1", "s.x"], kinds, strict=False)), {"p": kinds[3]}
    files = [make_file(chance, data, partition) for _ in range(10)]
    predicates = [make_predicate(chance, data | partition) for _ in range(3)]

    check(predicates, data, partition, files)


@each_case("offset", [-12, -5, 0, 5, 14])
@each_case("in_partition", [True, False])
def test_times_without_a_zone_are_those_of_any_zone(offset, in_partition):
    metadata = metadata_with(column("c", "timestamp"), partitions=("c",) if in_partition else ())
    # A file is written in UTC; the constant is in the zone of the session, which nobody tells.
    stats = []
    for value in _TIMES:
        text = cut_time(value).isoformat(timespec="milliseconds") + "Z"
        stats.append(json.dumps({"numRecords": 1, "minValues": {"c": text}, "maxValues": {"c": text}}))
    table = files_of(*stats, partitions=[{"c": value.isoformat() + "Z"} for value in _TIMES])
    for constant, operator in itertools.product(_TIMES, _OPERATORS):
        moment = constant.replace(tzinfo=timezone(offset * _HOUR))
        matching = [_ordered(KINDS[0], value.replace(tzinfo=UTC), moment, operator) for value in _TIMES]

        kept = kept_by(table, metadata, f"(c {operator} TIMESTAMP '{constant.isoformat(sep=' ')}')")

        assert [held for held, matches in zip(kept, matching, strict=True) if matches and not held] == []
