"""What the log says of a table itself: its protocol and its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from gateway.services.snapshot.log.beyond import beyond
from gateway.services.snapshot.log.fault import damaged
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.log.schema import TEXTS

# Written as JSON, which is how it goes into answers.
_MAX_METADATA: Final = 16 * 1024 * 1024
# Names of partition columns, and properties of a table.
_MAX_ENTRIES: Final = 10_000
_MAX_FEATURES: Final = 1000
_MAX_FEATURE_NAMES: Final = 64 * 1024


def protocol_of(rows: pl.DataFrame, name: str = "a commit") -> Protocol | None:
    if rows.is_empty():
        return None
    # One row only, and nothing of it as objects before it is known to be few.
    last_row = rows.tail(1)
    for features in ("readerFeatures", "writerFeatures"):
        _require_few(name, last_row[features], _MAX_FEATURES, "features")
    last = last_row.row(0, named=True)
    return Protocol(
        min_reader_version=last["minReaderVersion"] or 1,
        min_writer_version=last["minWriterVersion"] or 1,
        reader_features=_features(name, last["readerFeatures"]),
        writer_features=_features(name, last["writerFeatures"]),
    )


def metadata_of(name: str, rows: pl.DataFrame) -> Metadata | None:
    if rows.is_empty():
        return None
    last_row = rows.tail(1)
    for entries in (
        last_row["partitionColumns"],
        last_row["configuration"],
        last_row["format"].struct.field("options"),
    ):
        _require_few(name, entries, _MAX_ENTRIES, "partition columns or properties")
    last = last_row.row(0, named=True)
    if last["id"] is None or last["schemaString"] is None:
        raise damaged(name, "describes the table without an id or a schema")
    if None in (last["partitionColumns"] or ()):
        raise damaged(name, "describes the table with a partition column that has no name")
    if len(json.dumps(last, ensure_ascii=False).encode()) > _MAX_METADATA:
        raise beyond(name, f"describes the table by more than {_MAX_METADATA} bytes")
    file_format = last["format"] or {}
    return Metadata(
        id=last["id"],
        name=last["name"],
        description=last["description"],
        provider=file_format.get("provider") or "parquet",
        schema_string=last["schemaString"],
        partition_columns=tuple(last["partitionColumns"] or ()),
        format_options=_texts(file_format.get("options")),
        configuration=_texts(last["configuration"]),
        created_time=last["createdTime"],
    )


def _features(name: str, names: Sequence[str | None] | None) -> tuple[str, ...] | None:
    # A feature without a name is none that anybody knows.
    features = None if names is None else tuple(each or "" for each in names)
    if features is not None and sum(map(len, features)) > _MAX_FEATURE_NAMES:
        raise beyond(name, f"names features by more than {_MAX_FEATURE_NAMES} letters")
    return features


def _require_few(name: str, lists: pl.Series, most: int, of_what: str) -> None:
    counts = lists.map.keys().list.len() if lists.dtype == TEXTS else lists.list.len()
    count = counts.max()
    if isinstance(count, int) and count > most:
        raise beyond(name, f"has more than {most} {of_what}")


def _texts(entries: Mapping[str, str | None] | None) -> dict[str, str]:
    return {key: value for key, value in (entries or {}).items() if value is not None}
