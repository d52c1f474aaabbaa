"""From the actions of a log to a snapshot: what was added and not removed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from gateway.errors import Unsupported
from gateway.ports import LogFile
from gateway.services.snapshot.log.actions import NO_FILES, NOT_REMOVED, Actions
from gateway.services.snapshot.log.reconcile import COMMIT, compacted, find_live
from gateway.services.snapshot.log.schema import VECTOR_ID, vector_id
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.snapshot import Snapshot

# A refresh appends a chunk; reading many small ones costs more than joining them now and then.
_MAX_CHUNKS: Final = 32
# Files that are gone still take memory until the rest is copied, which is worth it when they are the most.
_MAX_DROPPED: Final = 1000


def load(
    checkpoint: Sequence[Actions], commits: Sequence[Actions], version: int, anchor: LogFile
) -> Snapshot:
    """Return the version that a checkpoint, if any, and the commits after it make up."""
    files = pl.concat([part.files for part in checkpoint]) if checkpoint else NO_FILES
    protocol = next((part.protocol for part in checkpoint if part.protocol), None)
    metadata = next((part.metadata for part in checkpoint if part.metadata), None)
    for commit in commits:
        protocol, metadata = commit.protocol or protocol, commit.metadata or metadata
    if protocol is None or metadata is None:
        raise Unsupported("the table's log is damaged: it has no protocol or no metaData action")
    seen = sum(part.files.height + part.dropped for part in (*checkpoint, *commits))
    files = _reconcile(files, commits)
    dropped = seen - files.height
    if dropped > files.height + _MAX_DROPPED:
        files, dropped = compacted(files), 0
    return Snapshot(
        version=version,
        protocol=protocol,
        metadata=metadata,
        files=Files(frame=files, num_files=files.height, size=int(files["size"].cast(pl.Int128).sum())),
        anchor=anchor,
        dropped=dropped,
    )


def advance(base: Snapshot, commits: Sequence[Actions], version: int, anchor: LogFile) -> Snapshot:
    """Return the version that a snapshot becomes by the commits after it."""
    before = Actions(
        files=base.files.frame,
        removed=NOT_REMOVED,
        protocol=base.protocol,
        metadata=base.metadata,
        dropped=base.dropped,
    )
    return load([before], commits, version, anchor)


def _reconcile(files: pl.DataFrame, commits: Sequence[Actions]) -> pl.DataFrame:
    """Return the files that are live after the commits."""
    added = _numbered([commit.files for commit in commits])
    removed = _numbered([commit.removed for commit in commits])
    if added is None or removed is None or (added.is_empty() and removed.is_empty()):
        return files
    key = ["path", VECTOR_ID]
    identified = added.with_columns(vector_id(pl.col("deletionVector")))
    touched = pl.concat([identified.select(key), removed.select(key)]).unique()
    kept = (
        files.with_columns(vector_id(pl.col("deletionVector")))
        .join(touched, on=key, how="anti", maintain_order="left", nulls_equal=True)
        .drop(VECTOR_ID)
    )
    result = pl.concat([kept, find_live(added, removed)], rechunk=False)
    return result.rechunk() if result.n_chunks() > _MAX_CHUNKS else result


def _numbered(frames: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
    numbered = [
        frame.with_columns(pl.lit(number, dtype=pl.Int64).alias(COMMIT))
        for number, frame in enumerate(frames)
    ]
    return pl.concat(numbered) if numbered else None
