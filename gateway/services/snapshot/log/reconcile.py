"""Which of the files that commits add are live after them."""

from __future__ import annotations

import io
from typing import Final

import polars as pl

from gateway.services.snapshot.log.schema import VECTOR_ID, vector_id

# The column with the number of the commit that a row is from.
COMMIT: Final = "commit"


def find_live(added: pl.DataFrame, removed: pl.DataFrame) -> pl.DataFrame:
    """Return the added files that no later commit removes, each as it was added last.

    Within one commit, what it adds outlives what it removes. A file is its path and deletion vector.
    """
    key = ["path", VECTOR_ID]
    last_removed = removed.group_by(key).agg(pl.col(COMMIT).max().alias("removed"))
    return (
        added.with_columns(vector_id(pl.col("deletionVector")))
        .unique(subset=key, keep="last", maintain_order=True)
        .join(last_removed, on=key, how="left", maintain_order="left", nulls_equal=True)
        .filter(pl.col("removed").is_null() | (pl.col("removed") <= pl.col(COMMIT)))
        .drop(COMMIT, VECTOR_ID, "removed")
    )


def compacted(files: pl.DataFrame) -> pl.DataFrame:
    """Return the same rows without what others left behind: strings are parts of buffers that all share."""
    stream = io.BytesIO()
    files.write_ipc_stream(stream)
    stream.seek(0)
    return pl.read_ipc_stream(stream)
