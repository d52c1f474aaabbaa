"""Which of the files that commits add are live after them."""

from __future__ import annotations

from typing import Final

import polars as pl

from gateway.services.snapshot.log.schema import VECTOR_ID, vector_id, vector_ids

# The column with the number of the commit that a row is from.
COMMIT: Final = "commit"
# What tells files apart.
_KEY: Final = ["path", VECTOR_ID]
# Up to so many a join takes longer to prepare than a loop to run.
_FEW: Final = 1000


def find_live(added: pl.DataFrame, removed: pl.DataFrame) -> pl.DataFrame:
    """Return the added files that no later commit removes, each as it was added last.

    Within one commit, what it adds outlives what it removes. A file is its path and deletion vector.
    """
    last_removed = removed.group_by(_KEY).agg(pl.col(COMMIT).max().alias("removed"))
    return (
        added.with_columns(vector_id(pl.col("deletionVector")))
        .unique(subset=_KEY, keep="last", maintain_order=True)
        .join(last_removed, on=_KEY, how="left", maintain_order="left", nulls_equal=True)
        .filter(pl.col("removed").is_null() | (pl.col("removed") <= pl.col(COMMIT)))
        .drop(COMMIT, VECTOR_ID, "removed")
    )


def keys_of(files: pl.DataFrame, rows: pl.Series | None = None) -> pl.DataFrame:
    """Return what tells files apart, or some of them, in the columns of ``schema.REMOVED``."""
    paths = files["path"] if rows is None else files["path"][rows]
    return pl.DataFrame([paths, vector_ids(files["deletionVector"], rows)])


def are_among(keys: pl.DataFrame, others: pl.DataFrame) -> pl.Series:
    """Tell of each key whether it is one of others."""
    if keys.height + others.height <= _FEW:
        known = set(others.iter_rows())
        return pl.Series([key in known for key in keys.iter_rows()], dtype=pl.Boolean)
    marked = others.unique().with_columns(pl.lit(value=True).alias("known"))
    found = keys.join(marked, on=_KEY, how="left", maintain_order="left", nulls_equal=True)
    return found["known"].is_not_null()
