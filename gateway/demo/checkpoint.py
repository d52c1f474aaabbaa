"""Classic checkpoints of a table's state, in one file or in parts."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

_TEXTS: Final = pl.Map(pl.String, pl.String)
_SCHEMA: Final[Mapping[str, pl.DataType]] = {
    "txn": pl.Struct({"appId": pl.String, "version": pl.Int64, "lastUpdated": pl.Int64}),
    "add": pl.Struct(
        {
            "path": pl.String,
            "partitionValues": _TEXTS,
            "size": pl.Int64,
            "modificationTime": pl.Int64,
            "dataChange": pl.Boolean,
            "tags": _TEXTS,
            "deletionVector": pl.Struct(
                {
                    "storageType": pl.String,
                    "pathOrInlineDv": pl.String,
                    "offset": pl.Int32,
                    "sizeInBytes": pl.Int32,
                    "cardinality": pl.Int64,
                }
            ),
            "stats": pl.String,
        }
    ),
    "remove": pl.Struct({"path": pl.String, "deletionTimestamp": pl.Int64, "dataChange": pl.Boolean}),
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


def to_checkpoint(actions: Sequence[Mapping[str, Any]], parts: int = 1) -> list[bytes]:
    """Return the actions of a table's state as parquet, shared out over the parts in order."""
    size = -(-len(actions) // parts)
    return [_to_parquet(actions[part * size : (part + 1) * size]) for part in range(parts)]


def _to_parquet(actions: Sequence[Mapping[str, Any]]) -> bytes:
    columns = {
        name: pl.Series(name, [action.get(name) for action in actions], dtype=dtype, strict=False)
        for name, dtype in _SCHEMA.items()
    }
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer, compression="snappy")
    return buffer.getvalue()
