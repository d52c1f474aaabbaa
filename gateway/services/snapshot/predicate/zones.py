"""Which blocks of an index may hold a file that is kept, by the bounds of all their files together."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from gateway.services.snapshot.index.manifest import TypedColumn
from gateway.services.snapshot.index.shelf import Index
from gateway.services.snapshot.predicate.bounds import DTYPES, Bounds, reckoned
from gateway.services.snapshot.predicate.condition import operands_of
from gateway.services.snapshot.predicate.data_type import DOUBLE, FLOAT, find_type
from gateway.services.snapshot.predicate.evaluation import Evaluation
from gateway.services.snapshot.predicate.hints import Hints
from gateway.services.snapshot.predicate.table_schema import Field


def find_blocks(index: Index, hints: Hints) -> pl.Series | None:
    """Return for each block whether a file of it may hold a match; None when all may.

    A block is left out only if each of its files would be.
    """
    condition = hints.condition
    if condition is None or not index.zones.height:
        return None
    bounds = {operand.field: _bounds(index, operand.field) for operand in operands_of(condition)}
    return Evaluation(bounds=bounds, height=index.zones.height).holds(condition)


def typed_columns(index: Index, hints: Hints) -> dict[int, TypedColumn]:
    """Return the columns that hints are about and that an index has as the table has them now, by number."""
    if hints.condition is None:
        return {}
    fields = {operand.field for operand in operands_of(hints.condition)}
    return {
        number: column
        for number, column in enumerate(index.manifest.columns)
        if any(_is_of(column, field) and not field.partition for field in fields)
    }


def _bounds(index: Index, field: Field) -> Bounds:
    found = _find(index.manifest.columns, field)
    bounds = None if found is None else index.zones.bounds(found)
    dtype = DTYPES[field.type.family]
    if bounds is None or bounds[0].dtype != dtype or bounds[1].dtype != dtype:
        nothing = pl.repeat(None, index.zones.height, dtype=dtype, eager=True)
        anything = pl.repeat(value=True, n=index.zones.height, dtype=pl.Boolean, eager=True)
        bounds = nothing, nothing, anything, anything
    low, high, nulls, values = bounds
    low, high = reckoned(low, high, field.type, is_point=field.partition)
    return Bounds(
        type=field.type,
        low=low,
        high=high,
        nulls=nulls,
        values=values,
        nan=not field.partition and field.type in {FLOAT, DOUBLE},
    )


def _find(columns: Iterable[TypedColumn], field: Field) -> int | None:
    return next((number for number, column in enumerate(columns) if _is_of(column, field)), None)


def _is_of(column: TypedColumn, field: Field) -> bool:
    # A column whose type has changed since is read from its texts.
    is_same = column.path == field.path and column.partition == field.partition
    return is_same and find_type(column.type) == field.type
