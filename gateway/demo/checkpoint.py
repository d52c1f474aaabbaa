"""Checkpoints of a table's state as parquet: in one file, in parts, or as sidecars of another file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

_TEXTS: Final = pl.Map(pl.String, pl.String)
_VECTOR: Final = pl.Struct(
    {
        "storageType": pl.String,
        "pathOrInlineDv": pl.String,
        "offset": pl.Int32,
        "sizeInBytes": pl.Int32,
        "cardinality": pl.Int64,
    }
)
_FILE_SCHEMA: Final[Mapping[str, pl.DataType]] = {
    "add": pl.Struct(
        {
            "path": pl.String,
            "partitionValues": _TEXTS,
            "size": pl.Int64,
            "modificationTime": pl.Int64,
            "dataChange": pl.Boolean,
            "tags": _TEXTS,
            "deletionVector": _VECTOR,
            "baseRowId": pl.Int64,
            "defaultRowCommitVersion": pl.Int64,
            "clusteringProvider": pl.String,
            "stats": pl.String,
        }
    ),
    "remove": pl.Struct(
        {
            "path": pl.String,
            "deletionTimestamp": pl.Int64,
            "dataChange": pl.Boolean,
            "extendedFileMetadata": pl.Boolean,
            "partitionValues": _TEXTS,
            "size": pl.Int64,
            "deletionVector": _VECTOR,
            "baseRowId": pl.Int64,
            "defaultRowCommitVersion": pl.Int64,
        }
    ),
}
_TABLE_SCHEMA: Final[Mapping[str, pl.DataType]] = {
    "txn": pl.Struct({"appId": pl.String, "version": pl.Int64, "lastUpdated": pl.Int64}),
    "domainMetadata": pl.Struct({"domain": pl.String, "configuration": pl.String, "removed": pl.Boolean}),
    "metaData": pl.Struct(
        {
            "id": pl.String,
            "name": pl.String,
            "description": pl.String,
            "format": pl.Struct({"provider": pl.String, "options": _TEXTS}),
            "schemaString": pl.String,
            "partitionColumns": pl.List(pl.String),
            "configuration": _TEXTS,
            "createdTime": pl.Int64,
        }
    ),
    "protocol": pl.Struct(
        {
            "minReaderVersion": pl.Int32,
            "minWriterVersion": pl.Int32,
            "readerFeatures": pl.List(pl.String),
            "writerFeatures": pl.List(pl.String),
        }
    ),
}
_V2_SCHEMA: Final[Mapping[str, pl.DataType]] = {
    "checkpointMetadata": pl.Struct({"version": pl.Int64, "tags": _TEXTS}),
    "sidecar": pl.Struct(
        {"path": pl.String, "sizeInBytes": pl.Int64, "modificationTime": pl.Int64, "tags": _TEXTS}
    ),
}


def to_checkpoint(
    actions: Sequence[Mapping[str, Any]], parts: int = 1, parsed: pl.Struct | None = None
) -> list[bytes]:
    """Return the actions of a table's state as parquet, shared out over the parts in order.

    With a type for parsed statistics, adds have them beside their text.
    """
    size = -(-len(actions) // parts)
    schema = {**_TABLE_SCHEMA, **_FILE_SCHEMA}
    return [_to_parquet(actions[part * size : (part + 1) * size], schema, parsed) for part in range(parts)]


def to_sidecars(
    actions: Sequence[Mapping[str, Any]], count: int, parsed: pl.Struct | None = None
) -> list[bytes]:
    """Return actions about files as the parquet of so many sidecars."""
    size = -(-len(actions) // count)
    return [
        _to_parquet(actions[each * size : (each + 1) * size], _FILE_SCHEMA, parsed) for each in range(count)
    ]


def to_v2_checkpoint(actions: Sequence[Mapping[str, Any]], parsed: pl.Struct | None = None) -> bytes:
    """Return the parquet of a checkpoint that may refer to sidecars."""
    return _to_parquet(actions, {**_V2_SCHEMA, **_TABLE_SCHEMA, **_FILE_SCHEMA}, parsed)


def _to_parquet(
    actions: Sequence[Mapping[str, Any]], schema: Mapping[str, pl.DataType], parsed: pl.Struct | None
) -> bytes:
    frame = pl.DataFrame(
        {
            name: pl.Series(name, [action.get(name) for action in actions], dtype=dtype, strict=False)
            for name, dtype in schema.items()
        }
    )
    if parsed is not None:
        statistics = pl.col("add").struct.field("stats").str.json_decode(parsed).alias("stats_parsed")
        with_statistics = pl.col("add").struct.with_fields(statistics)
        frame = frame.with_columns(pl.when(pl.col("add").is_not_null()).then(with_statistics).alias("add"))
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="snappy")
    return buffer.getvalue()
