"""Random predicates: each in SQL as Spark's client sends it, in JSON where that can say it, and for DuckDB.

Where Spark and DuckDB would differ, what DuckDB is asked says what Spark means: both sides of a comparison
are cast to the type in which Spark compares them, a text that is no value becomes null and not an error, and
the session's zone is set. NaN, zeros with a sign and the order of texts are the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.oracles import predicate_values as values
from tests.oracles.predicate_tables import Column, RandomTable
from tests.oracles.predicate_values import Kind, quote, sql_text

_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_JSON_OPERATIONS = {
    "=": "equal",
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
}
# Most clients send a filter or two; only a small predicate shows a mistake that others would hide.
_DEPTHS = (0, 0, 0, 0, 1, 1, 2, 3)
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    sql: str
    duckdb: str
    # None where JSON predicates have no word for a part of it.
    json: Any = None
    # Texts that are all to be true where the predicate is: Spark sends each of them by itself.
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A column, or a cast of one: as SQL and DuckDB write it, and what it is compared with."""

    sql: str
    duckdb: str
    column: Column
    constants: Kind
    # The type in which Spark compares the two; None where they are of one type already.
    common: str | None = None
    # Whether JSON predicates have words for it.
    json: bool = True


def make_predicates(seed: str, table: RandomTable, count: int) -> list[Predicate]:
    """Return predicates of several sizes; JSON can say at least one half of them."""
    chance = Random(f"{seed}/{table.number}/predicates")
    makers = [_Maker(chance, table, is_json=True), _Maker(chance, table, is_json=False)]
    return [makers[index % 2].make(depth=chance.choice(_DEPTHS)) for index in range(count)]


def quoted(column: Column) -> str:
    """Return a column's name for DuckDB."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in column.path)


class _Maker:
    def __init__(self, chance: Random, table: RandomTable, *, is_json: bool) -> None:
        self._chance = chance
        self._table = table
        self._is_json = is_json
        self._columns = [column for column in table.columns if column.kind.json or not is_json]
        self._present = {
            column.path: [row[index] for file in table.files for row in file.rows if row[index] is not None]
            for index, column in enumerate(table.columns)
        }

    def make(self, depth: int, column: Column | None = None) -> Predicate:
        """Return a predicate as deep as that, of one column or of any."""
        if depth == 0:
            return self._leaf(column or self._chance.choice(self._columns))
        if column is None and self._chance.random() < 0.4:
            column = self._chance.choice(self._columns)
        word = self._chance.choice(["and", "and", "or", "not"])
        if word == "not":
            return _negated(self.make(depth - 1, column))
        return _joined(word, [self.make(depth - 1, column), self.make(self._chance.randrange(depth), column)])

    def _leaf(self, column: Column) -> Predicate:
        if column.kind is values.BINARY or self._chance.random() < 0.1:
            return self._nulled(column)
        if column.kind is values.BOOLEAN and self._chance.random() < 0.3:
            return Predicate(sql=self._name(column), duckdb=quoted(column), json=_json_column(column))
        operand = self._operand(column)
        tests: list[Callable[[Operand], Predicate]] = [self._compared, self._compared, self._compared]
        tests += [self._listed, self._between]
        if not self._is_json:
            tests.append(self._same)
        if operand.constants is values.TEXT and not self._is_json:
            tests += [self._prefixed, self._like]
        return self._chance.choice(tests)(operand)

    def _operand(self, column: Column) -> Operand:
        name, kind = self._name(column), column.kind
        nature = 0.5 if self._is_json else self._chance.random()
        if (casts := _CASTS.get(kind.name)) and nature < (0.8 if kind in _IN_TEXTS else 0.2):
            target = self._chance.choice(casts)
            return Operand(
                sql=f"CAST({name} AS {target.spark})",
                duckdb=f"TRY_CAST({quoted(column)} AS {target.duckdb})",
                column=column,
                constants=target,
                json=False,
            )
        if (others := _COMPARED_AS.get(kind.name)) and nature > 0.8:
            constants, common = self._chance.choice(others)
            return Operand(
                sql=name, duckdb=quoted(column), column=column, constants=constants, common=common, json=False
            )
        # Which texts they are does not matter to a comparison.
        constants = values.TEXT if kind.delta == values.TEXT.delta else kind
        return Operand(sql=name, duckdb=quoted(column), column=column, constants=constants)

    def _name(self, column: Column) -> str:
        """Return a column's name in SQL."""
        ticked = ".".join("`" + part.replace("`", "``") + "`" for part in column.path)
        spellings = [ticked]
        if all(_IDENTIFIER.fullmatch(part) for part in column.path):
            plain = ".".join(column.path)
            spellings += [plain, plain, plain.upper() if plain.isascii() else plain, f"t.{plain}"]
        if column.partition:
            # As Spark rewrites filters on partitions, whose values are texts.
            spellings.append(f"CAST(partitionValues.{ticked} AS {column.kind.spark})")
        return self._chance.choice(spellings)

    def _values(self, operand: Operand, count: int) -> list[Any]:
        kind = operand.constants
        pool: Sequence[Any] = kind.draw(self._chance)
        if kind.delta == operand.column.kind.delta:
            # What rows have, and so where files begin and end, or anything else.
            present = self._present[operand.column.path] if self._chance.random() < 0.7 else []
            pool = present or operand.column.pool
        found = [kind.near(self._chance.choice(pool), self._chance) for _ in range(count)]
        # No client can send it within SQL.
        return [value.replace("\x00", "a") if isinstance(value, str) else value for value in found]

    def _constant(self, operand: Operand, value: Any) -> str:
        kind, zone = operand.constants, self._table.zone
        spellings = kind.typed(value, zone)
        # Beside a column of another type, a text would be taken for something else.
        if operand.common is None and "CAST" not in operand.sql:
            spellings = [*spellings, *kind.loose(value, zone)]
        return self._chance.choice(spellings)

    def _nulled(self, column: Column) -> Predicate:
        name = self._name(column)
        tree = {"op": "isNull", "children": [_json_column(column)]} if column.kind.json else None
        sql = self._chance.choice([f"({name} IS NULL)", f"isnull({name})"])
        found = Predicate(sql=sql, duckdb=f"({quoted(column)} IS NULL)", json=tree)
        if self._chance.random() < 0.5:
            return found
        return Predicate(
            sql=self._chance.choice([f"({name} IS NOT NULL)", f"isnotnull({name})", f"(NOT {sql})"]),
            duckdb=f"(NOT {found.duckdb})",
            json={"op": "not", "children": [tree]} if tree else None,
        )

    def _compared(self, operand: Operand) -> Predicate:
        (value,) = self._values(operand, 1)
        operator = self._chance.choice(_OPERATORS)
        sides = operand.sql, operator, self._constant(operand, value)
        if self._chance.random() < 0.2:
            sides = sides[2], _FLIPPED[operator], sides[0]
        left, right = _sides(operand, value)
        return Predicate(
            sql="({} {} {})".format(*sides),
            duckdb=f"({left} {operator} {right})",
            json=_json_comparison(operand, operator, value),
        )

    def _listed(self, operand: Operand) -> Predicate:
        found = self._values(operand, self._chance.randint(1, 4))
        texts = [self._constant(operand, value) for value in found]
        sides = [_sides(operand, value) for value in found]
        asked = [right for _, right in sides]
        if not self._is_json and self._chance.random() < 0.1:
            texts.append("NULL")
            asked.append("NULL")
        negation = "" if self._is_json else self._chance.choice(["", "", "", "NOT "])
        tree = _json_list(operand, found) if self._is_json else None
        return Predicate(
            sql=f"({operand.sql} {negation}IN ({', '.join(texts)}))",
            duckdb=f"({sides[0][0]} {negation}IN ({', '.join(asked)}))",
            json=tree,
        )

    def _between(self, operand: Operand) -> Predicate:
        low, high = sorted(self._values(operand, 2), key=operand.constants.order)
        left, least = _sides(operand, low)
        trees = [_json_comparison(operand, ">=", low), _json_comparison(operand, "<=", high)]
        return Predicate(
            sql=f"{operand.sql} BETWEEN {self._constant(operand, low)} AND {self._constant(operand, high)}",
            duckdb=f"({left} BETWEEN {least} AND {_sides(operand, high)[1]})",
            json=None if None in trees else {"op": "and", "children": trees},
        )

    def _same(self, operand: Operand) -> Predicate:
        (value,) = self._values(operand, 1)
        left, right = _sides(operand, value)
        return Predicate(
            sql=f"({operand.sql} <=> {self._constant(operand, value)})",
            duckdb=f"({left} IS NOT DISTINCT FROM {right})",
        )

    def _prefixed(self, operand: Operand) -> Predicate:
        (value,) = self._values(operand, 1)
        prefix = value[: self._chance.choice([1, 2, 31, 32, 33])]
        return Predicate(
            sql=f"startswith({operand.sql}, {sql_text(prefix)})",
            duckdb=f"starts_with({operand.duckdb}, {quote(prefix)})",
        )

    def _like(self, operand: Operand) -> Predicate:
        (value,) = self._values(operand, 1)
        prefix = value[: self._chance.choice([1, 2, 31, 32, 33])]
        escaped = re.sub(r"([%_\\])", r"\\\1", prefix)
        pattern = escaped + self._chance.choice(["%", "%", "_", "%a", ""])
        negation = self._chance.choice(["", "", "NOT "])
        # Spark's LIKE has the backslash for its escape, DuckDB's has none unless it is told.
        return Predicate(
            sql=f"{operand.sql} {negation}LIKE {sql_text(pattern)}",
            duckdb=f"({operand.duckdb} {negation}LIKE {quote(pattern)} ESCAPE '\\')",
        )


def _sides(operand: Operand, value: Any) -> tuple[str, str]:
    """Return a column and a constant as DuckDB compares them."""
    constant = operand.constants.constant(value)
    if operand.common is None:
        return operand.duckdb, constant
    return f"CAST({operand.duckdb} AS {operand.common})", f"CAST({constant} AS {operand.common})"


def _json_column(column: Column) -> dict[str, Any]:
    return {"op": "column", "name": ".".join(column.path), "valueType": column.kind.json}


def _json_comparison(operand: Operand, operator: str, value: Any) -> dict[str, Any] | None:
    kind = operand.constants
    if not operand.json or not kind.json:
        return None
    literal = {"op": "literal", "value": kind.json_text(value), "valueType": kind.json}
    found = {
        "op": _JSON_OPERATIONS.get(operator, "equal"),
        "children": [_json_column(operand.column), literal],
    }
    return {"op": "not", "children": [found]} if operator == "<>" else found


def _json_list(operand: Operand, found: Sequence[Any]) -> dict[str, Any] | None:
    trees = [_json_comparison(operand, "=", value) for value in found]
    if None in trees:
        return None
    literals = [tree["children"][1] for tree in trees if tree is not None]
    return {"op": "in", "children": [_json_column(operand.column), *literals]}


def _negated(child: Predicate) -> Predicate:
    return Predicate(
        sql=f"(NOT ({child.sql}))",
        duckdb=f"(NOT {child.duckdb})",
        json=None if child.json is None else {"op": "not", "children": [child.json]},
    )


def _joined(word: str, children: Sequence[Predicate]) -> Predicate:
    trees = [child.json for child in children]
    return Predicate(
        sql="(" + f" {word.upper()} ".join(f"({child.sql})" for child in children) + ")",
        duckdb="(" + f" {word.upper()} ".join(child.duckdb for child in children) + ")",
        json=None if None in trees else {"op": word, "children": trees},
        parts=tuple(_parts(children)) if word == "and" else (),
    )


def _parts(children: Sequence[Predicate]) -> Iterator[str]:
    for child in children:
        yield from child.parts or (child.sql,)


# Texts that hold values of other types.
_IN_TEXTS = (values.NUMERALS, values.DAYS)
_WHOLE = (values.BYTE, values.SHORT, values.INTEGER, values.LONG)
_DIGITS = "DECIMAL(38, 10)"
# What a column may be cast to.
_CASTS: Mapping[str, Sequence[Kind]] = {
    **{kind.name: (values.LONG, values.INTEGER, values.DOUBLE, values.BYTE) for kind in _WHOLE},
    "float": (values.DOUBLE,),
    "double": (values.FLOAT,),
    "decimal(10,2)": (values.DOUBLE, values.LONG_DECIMAL),
    "date": (values.TIMESTAMP, values.LOCAL_TIMESTAMP),
    "timestamp": (values.DATE, values.LOCAL_TIMESTAMP),
    "timestamp_ntz": (values.DATE, values.TIMESTAMP),
    "numerals": (values.DOUBLE, values.DOUBLE, values.BYTE, values.DECIMAL),
    "days": (values.DATE,),
}
# Constants of other types, and the type in which Spark compares the two. A float and a whole number are
# compared as floats, or as doubles where Spark keeps to the standard.
_COMPARED_AS: Mapping[str, Sequence[tuple[Kind, str]]] = {
    **{
        kind.name: (
            (values.LONG, "BIGINT"),
            (values.DOUBLE, "DOUBLE"),
            (values.DECIMAL, _DIGITS),
            (values.FLOAT, "FLOAT"),
            (values.FLOAT, "DOUBLE"),
        )
        for kind in _WHOLE
    },
    "float": (
        (values.DOUBLE, "DOUBLE"),
        (values.INTEGER, "FLOAT"),
        (values.LONG, "DOUBLE"),
        (values.DECIMAL, "DOUBLE"),
    ),
    "double": ((values.FLOAT, "DOUBLE"), (values.LONG, "DOUBLE"), (values.LONG_DECIMAL, "DOUBLE")),
    "decimal(10,2)": ((values.LONG, _DIGITS), (values.DOUBLE, "DOUBLE"), (values.LONG_DECIMAL, _DIGITS)),
    "decimal(38,10)": ((values.LONG, _DIGITS), (values.DOUBLE, "DOUBLE"), (values.DECIMAL, _DIGITS)),
    "date": ((values.TIMESTAMP, "TIMESTAMPTZ"), (values.LOCAL_TIMESTAMP, "TIMESTAMP")),
    "timestamp": ((values.DATE, "TIMESTAMPTZ"), (values.LOCAL_TIMESTAMP, "TIMESTAMPTZ")),
    "timestamp_ntz": ((values.DATE, "TIMESTAMP"), (values.TIMESTAMP, "TIMESTAMPTZ")),
}
