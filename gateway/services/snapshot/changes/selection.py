"""Which files of a commit are told, and as what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from gateway.services.snapshot.answer.line import ActionKind
from gateway.services.snapshot.changes.commit import Commit

# Files of one kind; a commit has them in this order, in which cursors count.
Selected = Sequence[tuple[ActionKind, pl.DataFrame]]
Selection = Callable[[Commit], Selected]


def select_data_changes(commit: Commit) -> Selected:
    """Return the files that a commit adds and removes, but for those that only hold the same data anew."""
    return [(ActionKind.ADD, _changing(commit.add)), (ActionKind.REMOVE, _changing(commit.remove))]


def select_row_changes(commit: Commit) -> Selected:
    """Return the files that tell which rows changed: where change data was written, nothing else."""
    if not commit.cdc.is_empty():
        return [(ActionKind.CDF, commit.cdc)]
    return [] if commit.changed_nothing else select_data_changes(commit)


def _changing(rows: pl.DataFrame) -> pl.DataFrame:
    changing = rows["dataChange"]
    return rows if changing.all() else rows.filter(changing)
