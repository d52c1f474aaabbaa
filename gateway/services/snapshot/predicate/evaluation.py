"""Where a condition may be true, given the bounds of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Final

import polars as pl

from gateway.services.snapshot.predicate.bounds import Bounds, cast_all
from gateway.services.snapshot.predicate.condition import (
    All,
    Compared,
    Condition,
    Either,
    Fixed,
    Listed,
    Nulled,
    Operand,
)
from gateway.services.snapshot.predicate.data_type import DOUBLE, FLOAT
from gateway.services.snapshot.predicate.expression import Operator
from gateway.services.snapshot.predicate.table_schema import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    bounds: Mapping[Field, Bounds]
    height: int
    # What casts have made, as a cast of a text is a pass over all rows that costs more than a comparison.
    _cast: dict[Operand, Bounds | None] = field(default_factory=dict, repr=False)

    def holds(self, condition: Condition, limited: frozenset[Field] = frozenset()) -> pl.Series:
        """Return where the condition may be true; ``limited`` are columns that are not NaN if it is."""
        match condition:
            case Fixed(matches=matches):
                return self._all(value=matches)
            case All(children=children):
                # A row that matches has all of them true, so that one child may tell about another.
                limited |= {found for child in children if (found := _limited_by(child)) is not None}
                masks = (self.holds(child, limited) for child in children)
                return reduce(and_, masks, self._all(value=True))
            case Either(children=children):
                return reduce(or_, (self.holds(child, limited) for child in children))
        return self._holds_leaf(condition, limited)

    def _holds_leaf(self, leaf: Compared | Listed | Nulled, limited: frozenset[Field]) -> pl.Series:
        bounds = self._bounds_of(leaf.operand)
        if bounds is None:
            return self._all(value=True)
        if isinstance(leaf, Nulled):
            return bounds.nulls if leaf.is_null else bounds.values
        if isinstance(leaf, Listed):
            return bounds.values & _is_listed(bounds, leaf)
        if bounds.nan and leaf.operator in _TRUE_OF_NAN and leaf.operand.field not in limited:
            return bounds.values
        return bounds.values & _is_compared(bounds, leaf)

    def _bounds_of(self, operand: Operand) -> Bounds | None:
        if operand not in self._cast:
            self._cast[operand] = cast_all(self.bounds[operand.field], operand.casts)
        return self._cast[operand]

    def _all(self, *, value: bool) -> pl.Series:
        return pl.repeat(value, self.height, dtype=pl.Boolean, eager=True)


def _limited_by(condition: Condition) -> Field | None:
    """Return the column that the condition is not true of where it is NaN."""
    if isinstance(condition, Compared):
        limits = condition.operator not in _TRUE_OF_NAN
    else:
        limits = isinstance(condition, Listed)
    if not limits or not isinstance(condition, Compared | Listed):
        return None
    # As another type NaN may be a number.
    stays = all(target in {FLOAT, DOUBLE} for target in condition.operand.casts)
    return condition.operand.field if stays else None


def _is_compared(bounds: Bounds, leaf: Compared) -> pl.Series:
    dtype = bounds.low.dtype
    compare = _COMPARISONS[leaf.operator]
    holds = compare(
        pl.col("low"), pl.col("high"), pl.lit(leaf.low, dtype=dtype), pl.lit(leaf.high, dtype=dtype)
    )
    return (
        pl.DataFrame({"low": bounds.low, "high": bounds.high}).select(holds.fill_null(value=True)).to_series()
    )


def _is_listed(bounds: Bounds, leaf: Listed) -> pl.Series:
    # Those that begin before the end of the file's range, less those that end before its beginning.
    begun = leaf.lows.search_sorted(bounds.high, side="right")
    ended = leaf.highs.search_sorted(bounds.low, side="left")
    return bounds.low.is_null() | bounds.high.is_null() | (begun > ended)


# NaN is above every other number.
_TRUE_OF_NAN: Final = frozenset({Operator.GT, Operator.GE, Operator.NE})
# Whether a value between low and high may compare so with a constant between ``least`` and ``most``.
_COMPARISONS: Final[Mapping[Operator, Callable[[pl.Expr, pl.Expr, pl.Expr, pl.Expr], pl.Expr]]] = {
    Operator.EQ: lambda low, high, least, most: (low <= most) & (high >= least),
    Operator.NE: lambda low, high, least, most: (low != high) | (least != most) | (low != least),
    Operator.LT: lambda low, _, __, most: low < most,
    Operator.LE: lambda low, _, __, most: low <= most,
    Operator.GT: lambda _, high, least, __: high > least,
    Operator.GE: lambda _, high, least, __: high >= least,
}
