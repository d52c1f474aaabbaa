"""Which files may hold a row that matches: by their partition values, then by their statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
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
# Of so many rows they are read in some milliseconds.
_FEW_ROWS: Final = 5_000


class Unread(Exception):
    """It takes columns that have not been made."""


def find_kept(files: Files, hints: Hints, *, soon: bool = False) -> pl.Series | None:
    """Return for each row whether its file may hold a match; None when all may.

    A file is left out only if no row of it can make all of the hints true. Where it is wanted soon, no column
    is made or waited for: it raises ``Unread`` when one would have to be.
    """
    condition = hints.condition
    if condition is None or files.height == 0:
        return None
    if soon:
        # As they are now: what others forget meanwhile is still there.
        files = replace(files, columns=files.columns.grown())
    children = condition.children if isinstance(condition, All) else (condition,)
    by_partition = [child for child in children if _is_partitioned(child)]
    by_statistics = [child for child in children if not _is_partitioned(child)]
    kept = _kept(files, by_partition, soon=soon)
    if not by_statistics or not kept.any():
        return kept
    if kept.sum() <= files.height * _FEW and not _is_ready(files, by_statistics):
        return _narrowed(files, by_statistics, kept, soon=soon)
    return kept & _kept(files, by_statistics, soon=soon)


def _kept(files: Files, conditions: Sequence[Condition], *, soon: bool) -> pl.Series:
    if soon and not _is_ready(files, conditions):
        raise Unread
    bounds = find_bounds(files, _fields(conditions))
    return Evaluation(bounds=bounds, height=files.height).holds(All(children=tuple(conditions)))


def _narrowed(files: Files, conditions: Sequence[Condition], kept: pl.Series, *, soon: bool) -> pl.Series:
    """Return which of the kept rows the conditions keep, reading the statistics of no other rows."""
    rows = kept.arg_true()
    if soon and rows.len() > _FEW_ROWS:
        raise Unread
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
