"""Predicates as they are evaluated: on known columns, without negation, with what is unknown left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

import polars as pl

from gateway.services.snapshot.predicate.bounds import (
    MILLISECOND,
    Bounds,
    cast_all,
    point_bounds,
    range_bounds,
)
from gateway.services.snapshot.predicate.data_type import DOUBLE, LONG, DataType, Family
from gateway.services.snapshot.predicate.expression import (
    And,
    Column,
    Comparison,
    Constant,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Prefix,
    Unknown,
)
from gateway.services.snapshot.predicate.table_schema import Field, TableSchema

# Of a list that cannot be searched: each of its values is compared by itself.
_MAX_COMPARED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A column of the table, cast to each of the types in turn."""

    field: Field
    casts: tuple[DataType, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The operand against a constant that is known to be within bounds."""

    operand: Operand
    operator: Operator
    low: int | float | bytes
    high: int | float | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The operand equals one of the constants: the lower and the upper bounds of all, each sorted."""

    operand: Operand
    lows: pl.Series = field(repr=False)
    highs: pl.Series = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nulled:
    operand: Operand
    is_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class All:
    children: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Either:
    children: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    matches: bool


Condition: TypeAlias = Compared | Listed | Nulled | All | Either | Fixed


def bind(expression: Expression, schema: TableSchema, *, negated: bool = False) -> Condition | None:
    """Return when the expression, or its negation, may be true of a row; None when that cannot be told."""
    match expression:
        case Not(child=child):
            return bind(child, schema, negated=not negated)
        case And(children=children) | Or(children=children):
            bound = [bind(child, schema, negated=negated) for child in children]
            return every(bound) if isinstance(expression, And) is not negated else _any(bound)
        case Constant(value=value):
            # Null is neither true nor false.
            return Fixed(matches=value is not None and value is not negated)
        case Unknown():
            return None
        case Comparison() | In() | Prefix() | IsNull():
            return _bind_leaf(expression, schema, negated=negated)
        case _:
            assert_never(expression)


def every(conditions: Iterable[Condition | None]) -> Condition | None:
    """Return when all hold that are known."""
    known: list[Condition] = []
    for condition in conditions:
        if condition is not None:
            known.extend(condition.children if isinstance(condition, All) else [condition])
    if not known:
        return None
    return known[0] if len(known) == 1 else All(children=tuple(known))


def operands_of(condition: Condition) -> Iterator[Operand]:
    if isinstance(condition, All | Either):
        for child in condition.children:
            yield from operands_of(child)
    elif not isinstance(condition, Fixed):
        yield condition.operand


def _any(conditions: Sequence[Condition | None]) -> Condition | None:
    known = [condition for condition in conditions if condition is not None]
    if len(known) < len(conditions):
        return None
    return known[0] if len(known) == 1 else Either(children=tuple(known))


def _bind_leaf(
    leaf: Comparison | In | Prefix | IsNull, schema: TableSchema, *, negated: bool
) -> Condition | None:
    operand = _operand(leaf.column, schema)
    if operand is None:
        return None
    if isinstance(leaf, IsNull):
        return Nulled(operand=operand, is_null=not negated)
    return _bind_values(leaf, operand, negated=negated) if operand.field.comparable else None


def _bind_values(leaf: Comparison | In | Prefix, operand: Operand, *, negated: bool) -> Condition | None:
    match leaf:
        case Prefix(prefix=prefix):
            return None if negated else _prefixed(operand, prefix.encode())
        case In(literals=literals):
            return _excluded(operand, literals) if negated else _listed(operand, literals)
        case Comparison(operator=operator, literal=literal):
            return _compared(operand, operator.negated if negated else operator, literal)


def _operand(column: Column, schema: TableSchema) -> Operand | None:
    field = schema.find(column.path)
    return None if field is None else Operand(field=field, casts=column.casts)


def _prefixed(operand: Operand, prefix: bytes) -> Condition | None:
    if _type_of(operand).family is not Family.TEXT:
        return None
    return Compared(operand=operand, operator=Operator.EQ, low=prefix, high=prefix + b"\xff")


def _excluded(operand: Operand, literals: Sequence[Literal]) -> Condition | None:
    if len(literals) > _MAX_COMPARED:
        return None
    return every(_compared(operand, Operator.NE, literal) for literal in literals)


def _listed(operand: Operand, literals: Sequence[Literal]) -> Condition | None:
    first = literals[0]
    if any(literal.type != first.type or literal.casts != first.casts for literal in literals):
        if len(literals) > _MAX_COMPARED:
            return None
        return _any([_compared(operand, Operator.EQ, literal) for literal in literals])
    found = _matched(operand, literals)
    if found is None:
        return None
    cast, bounds = found
    return Listed(operand=cast, lows=bounds.low.sort(), highs=bounds.high.sort())


def _compared(operand: Operand, operator: Operator, literal: Literal) -> Condition | None:
    found = _matched(operand, [literal])
    if found is None:
        return None
    cast, bounds = found
    return Compared(operand=cast, operator=operator, low=bounds.low.item(), high=bounds.high.item())


def _matched(operand: Operand, literals: Sequence[Literal]) -> tuple[Operand, Bounds] | None:
    """Return column and constants, all alike, as the one type in which they are compared."""
    texts = pl.Series([literal.text for literal in literals], dtype=pl.String)
    bounds = cast_all(point_bounds(texts, literals[0].type), literals[0].casts)
    common = None if bounds is None else _common(_type_of(operand), bounds.type)
    if common is None:
        return None
    column_type, literal_type = common
    bounds = cast_all(bounds, [literal_type])
    if bounds is None or bounds.low.has_nulls() or bounds.high.has_nulls():
        return None
    if column_type != _type_of(operand):
        operand = Operand(field=operand.field, casts=(*operand.casts, column_type))
    return (operand, _blurred(bounds)) if _is_castable(operand) else None


def _type_of(operand: Operand) -> DataType:
    return operand.casts[-1] if operand.casts else operand.field.type


def _is_castable(operand: Operand) -> bool:
    """Tell whether the bounds of the column say anything about what it is cast to."""
    nothing = pl.Series([None], dtype=pl.String)
    if operand.field.partition:
        bounds = point_bounds(nothing, operand.field.type)
    else:
        bounds = range_bounds(nothing, nothing, operand.field.type, nothing, nothing)
    return cast_all(bounds, operand.casts) is not None


def _common(column: DataType, literal: DataType) -> tuple[DataType, DataType] | None:
    """Return the types as which the two are compared, as Spark would; None for those that are not."""
    families = {column.family, literal.family}
    if families <= {Family.INTEGER, Family.NUMBER}:
        return (DOUBLE, DOUBLE) if Family.NUMBER in families else (column, LONG)
    if len(families) == 1:
        return column, column
    if Family.TEXT in families:
        return _parsed(column, literal)
    if families <= {Family.DATE, Family.TIMESTAMP, Family.LOCAL_TIMESTAMP}:
        # A date is compared as a time, whichever side it is on.
        common = literal if column.family is Family.DATE else column
        return common, common
    return None


def _parsed(column: DataType, literal: DataType) -> tuple[DataType, DataType]:
    """Return the types for a text and something else: the text is taken for what the other is."""
    other = literal if column.family is Family.TEXT else column
    wide = {Family.INTEGER: LONG, Family.NUMBER: DOUBLE}.get(other.family, other)
    return wide if column.family in {Family.TEXT, Family.NUMBER} else column, wide


def _blurred(bounds: Bounds) -> Bounds:
    # Spark's connector cuts the times of its JSON predicates to milliseconds, towards the epoch.
    if bounds.type.family not in {Family.TIMESTAMP, Family.LOCAL_TIMESTAMP}:
        return bounds
    return Bounds(
        type=bounds.type,
        low=bounds.low - MILLISECOND,
        high=bounds.high + MILLISECOND,
        nulls=bounds.nulls,
        values=bounds.values,
    )
