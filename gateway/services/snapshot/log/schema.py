"""The columns in which the actions of a log are held: every field that the Delta protocol gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

TEXTS: Final = pl.Map(pl.String, pl.String)

# A file without one has no ``storageType``: the struct itself may be there, with nothing in it.
DELETION_VECTOR: Final = pl.Struct(
    {
        "storageType": pl.String,
        "pathOrInlineDv": pl.String,
        "offset": pl.Int32,
        "sizeInBytes": pl.Int32,
        "cardinality": pl.Int64,
    }
)

ADD: Final[Mapping[str, pl.DataType]] = {
    "path": pl.String(),
    "partitionValues": TEXTS,
    "size": pl.Int64(),
    "modificationTime": pl.Int64(),
    "dataChange": pl.Boolean(),
    "stats": pl.String(),
    "tags": TEXTS,
    "deletionVector": DELETION_VECTOR,
    "baseRowId": pl.Int64(),
    "defaultRowCommitVersion": pl.Int64(),
    "clusteringProvider": pl.String(),
}

REMOVE: Final[Mapping[str, pl.DataType]] = {
    "path": pl.String(),
    "deletionTimestamp": pl.Int64(),
    "dataChange": pl.Boolean(),
    "extendedFileMetadata": pl.Boolean(),
    "partitionValues": TEXTS,
    "size": pl.Int64(),
    "stats": pl.String(),
    "tags": TEXTS,
    "deletionVector": DELETION_VECTOR,
    "baseRowId": pl.Int64(),
    "defaultRowCommitVersion": pl.Int64(),
}

CDC: Final[Mapping[str, pl.DataType]] = {
    "path": pl.String(),
    "partitionValues": TEXTS,
    "size": pl.Int64(),
    "dataChange": pl.Boolean(),
    "tags": TEXTS,
}

PROTOCOL: Final[Mapping[str, pl.DataType]] = {
    "minReaderVersion": pl.Int32(),
    "minWriterVersion": pl.Int32(),
    "readerFeatures": pl.List(pl.String),
    "writerFeatures": pl.List(pl.String),
}

METADATA: Final[Mapping[str, pl.DataType]] = {
    "id": pl.String(),
    "name": pl.String(),
    "description": pl.String(),
    "format": pl.Struct({"provider": pl.String, "options": TEXTS}),
    "schemaString": pl.String(),
    "partitionColumns": pl.List(pl.String),
    "configuration": TEXTS,
    "createdTime": pl.Int64(),
}

# The path as it goes into URLs, percent-encoded and relative to the table's location; null where it is
# absolute, or not fit to be served.
ENCODED: Final = "encoded"

# The columns of a snapshot's files.
FILES: Final[Mapping[str, pl.DataType]] = {**ADD, ENCODED: pl.String()}

# What tells a logical file from another one at the same path: null without a deletion vector.
VECTOR_ID: Final = "vectorId"

# Up to so many an expression takes longer to prepare than a loop to run.
_FEW: Final = 1000

# What identifies a file that was removed.
REMOVED: Final[Mapping[str, pl.DataType]] = {"path": pl.String(), VECTOR_ID: pl.String()}


def vector_id(vector: pl.Expr) -> pl.Expr:
    """Return what identifies a deletion vector, as the Delta protocol derives it; null without one."""
    kind, place = vector.struct.field("storageType"), vector.struct.field("pathOrInlineDv")
    offset = vector.struct.field("offset").cast(pl.String)
    return pl.concat_str(kind, place, pl.concat_str(pl.lit("@"), offset).fill_null("")).alias(VECTOR_ID)


def vector_ids(vectors: pl.Series, rows: pl.Series | None = None) -> pl.Series:
    """Return what identifies each of a column of deletion vectors, or of some rows of it."""
    members = vectors.struct.unnest()
    parts = [members[name] for name in ("storageType", "pathOrInlineDv", "offset")]
    if rows is not None:
        # One by one: many at once are taken by many threads, which is more work than a few rows are.
        parts = [part[rows] for part in parts]
    if parts[0].len() > _FEW:
        return pl.DataFrame(parts).to_struct().to_frame("").select(vector_id(pl.col(""))).to_series()
    ids = [_find_id(*found) for found in zip(*(part.to_list() for part in parts), strict=True)]
    return pl.Series(VECTOR_ID, ids, dtype=pl.String)


def _find_id(kind: str | None, place: str | None, offset: int | None) -> str | None:
    if kind is None or place is None:
        return None
    return f"{kind}{place}" if offset is None else f"{kind}{place}@{offset}"
