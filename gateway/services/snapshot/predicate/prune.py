"""Which files may hold a row that matches: by their partition values, then by their statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from gateway.services.snapshot.predicate.column_bounds import find_bounds, find_some_bounds
from gateway.services.snapshot.predicate.condition import All, Condition, operands_of
from gateway.services.snapshot.predicate.evaluation import Evaluation
from gateway.services.snapshot.predicate.hints import Hints
from gateway.services.snapshot.predicate.table_schema import Field
from gateway.services.snapshot.state.files import Files

# Where partitions leave so few of the rows, their statistics are read for this query alone.
_FEW: Final = 1 / 16


def find_kept(files: Files, hints: Hints) -> pl.Series | None:
    """Return for each row whether its file may hold a match; None when all may.

    A file is left out only if no row of it can make all of the hints true.
    """
    condition = hints.condition
    if condition is None or files.height == 0:
        return None
    children = condition.children if isinstance(condition, All) else (condition,)
    by_partition = [child for child in children if _is_partitioned(child)]
    by_statistics = [child for child in children if not _is_partitioned(child)]
    kept = _kept(files, by_partition)
    if not by_statistics or not kept.any():
        return kept
    if kept.sum() <= files.height * _FEW and not _is_ready(files, by_statistics):
        return _narrowed(files, by_statistics, kept)
    return kept & _kept(files, by_statistics)


def _kept(files: Files, conditions: Sequence[Condition]) -> pl.Series:
    bounds = find_bounds(files, _fields(conditions))
    return Evaluation(bounds=bounds, height=files.height).holds(All(children=tuple(conditions)))


def _narrowed(files: Files, conditions: Sequence[Condition], kept: pl.Series) -> pl.Series:
    """Return which of the kept rows the conditions keep, reading the statistics of no other rows."""
    rows = kept.arg_true()
    bounds = find_some_bounds(files, _fields(conditions), kept)
    holds = Evaluation(bounds=bounds, height=rows.len()).holds(All(children=tuple(conditions)))
    return kept.clone().scatter(rows, holds)


def _is_ready(files: Files, conditions: Sequence[Condition]) -> bool:
    return all(files.columns.has(field, files.height) for field in _fields(conditions))


def _is_partitioned(condition: Condition) -> bool:
    return all(operand.field.partition for operand in operands_of(condition))


def _fields(conditions: Iterable[Condition]) -> list[Field]:
    found = (operand.field for condition in conditions for operand in operands_of(condition))
    return list(dict.fromkeys(found))
