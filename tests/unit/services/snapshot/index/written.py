"""Indexes as the pipeline writes them, made of a snapshot by other means."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from gateway.domain.index import CURRENT, MANIFEST, describe, point_to, prefix_of, table_key, to_ms
from gateway.domain.location import Location
from gateway.services.snapshot.index.block import MAXIMUM, MINIMUM, NULLS, RECORDS, TYPED
from gateway.services.snapshot.log.schema import VECTOR_ID, vector_id
from gateway.services.snapshot.predicate.column_bounds import find_bounds
from gateway.services.snapshot.predicate.statistics import read_statistics
from gateway.services.snapshot.predicate.table_schema import Field, TableSchema
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.snapshot import Snapshot
from tests.fakes.state_store import FakeStateStore

MADE_AT = datetime(2025, 1, 1, tzinfo=UTC)


def write_index(
    state: FakeStateStore,
    location: Location,
    snapshot: Snapshot,
    *,
    name: str = "i1",
    block_rows: int = 3,
    columns: Sequence[str] = (),
) -> dict[str, Any]:
    """Write an index of a snapshot that is held, and point to it; return what its manifest says."""
    prefix = prefix_of(location)
    fields = [field for each in columns if (field := TableSchema(snapshot.metadata).find((each,)))]
    files = _sorted(snapshot.files)
    parts = [files[at : at + block_rows] for at in range(0, files.height, block_rows)]
    zones = []
    for number, rows in enumerate(parts):
        key = f"{name}/blocks/part-{number:05d}.parquet"
        content = to_parquet(rows.drop(VECTOR_ID, "encoded").hstack(_typed(rows, fields)))
        put(state, prefix + key, content)
        zones.append(_zone(key, content, rows, fields))
    frame = pl.concat(zones) if zones else _zone("", b"", files, fields).clear()
    zones_content = to_parquet(frame)
    put(state, f"{prefix}{name}/zones/part-00000.parquet", zones_content)
    manifest = {
        "location": table_key(location),
        "version": snapshot.version,
        "anchor": {
            "name": snapshot.anchor.name,
            "size": snapshot.anchor.size,
            "modified_at_ms": to_ms(snapshot.anchor.modified_at),
        },
        **_table(snapshot),
        "num_files": files.height,
        "size": int(files["size"].sum()),
        "vectors": int(files[VECTOR_ID].ne("").sum()),
        "columns": [
            {"path": list(field.path), "type": field.type.name, "partition": field.partition}
            for field in fields
        ],
        "zones": {"key": f"{name}/zones/part-00000.parquet", **stored(zones_content)},
    }
    publish(state, location, name, manifest)
    return manifest


def put(state: FakeStateStore, key: str, content: bytes) -> None:
    state.entries[key] = content, MADE_AT


def publish(state: FakeStateStore, location: Location, name: str, manifest: dict[str, Any]) -> None:
    content = describe(manifest)
    put(state, f"{prefix_of(location)}{name}/{MANIFEST}", content)
    put(state, f"{prefix_of(location)}{CURRENT}", point_to(name, content))


def stored(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def to_parquet(frame: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.write_parquet(stream)
    return stream.getvalue()


def _sorted(files: Files) -> pl.DataFrame:
    rows = files.rows(0, files.height)
    return rows.with_columns(vector_id(pl.col("deletionVector")).fill_null("")).sort("path", VECTOR_ID)


def _typed(rows: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    columns = {TYPED: pl.Series([True] * rows.height, dtype=pl.Boolean)}
    paths = [field.path for field in fields if not field.partition]
    found = read_statistics(rows["stats"], paths)
    for number, field in enumerate(fields):
        if field.partition:
            continue
        statistics = found[field.path]
        columns[RECORDS] = statistics.records
        dtype = {"long": pl.Int64, "double": pl.Float64, "string": pl.String}[field.type.name]
        columns[f"{MINIMUM}{number}"] = statistics.minima.cast(dtype)
        columns[f"{MAXIMUM}{number}"] = statistics.maxima.cast(dtype)
        columns[f"{NULLS}{number}"] = statistics.null_count
    # Some rows are left to their texts.
    columns[TYPED] = pl.Series([len(path) % 5 > 0 for path in rows["path"]], dtype=pl.Boolean)
    return pl.DataFrame(columns)


def _zone(key: str, content: bytes, rows: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    facts: dict[str, Any] = {
        "file": key,
        "length": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "rows": rows.height,
        "size": rows["size"].sum(),
        "vectors": rows[VECTOR_ID].ne("").sum(),
        "odd": bool((rows["encoded"].is_null() | rows[VECTOR_ID].ne("")).any()),
    }
    for end, row in (("first", 0), ("last", -1)):
        facts[f"{end}_path"] = rows["path"][row] if rows.height else ""
        facts[f"{end}_vector"] = rows[VECTOR_ID][row] if rows.height else ""
    columns = {fact: pl.Series([value]) for fact, value in facts.items()}
    files = Files(frame=rows.drop(VECTOR_ID), num_files=rows.height, size=0)
    for number, (_, bounds) in enumerate(find_bounds(files, fields).items()):
        sure = bounds.values
        low, high = bounds.low.filter(sure), bounds.high.filter(sure)
        columns[f"low{number}"] = _edge(low, low.min())
        columns[f"high{number}"] = _edge(high, high.max())
        columns[f"nulls{number}"] = pl.Series([bool(bounds.nulls.any())])
        columns[f"values{number}"] = pl.Series([bool(sure.any())])
    return pl.DataFrame(columns)


def _edge(values: pl.Series, edge: Any) -> pl.Series:
    # With one that is not known, none is.
    return pl.Series([None if values.has_nulls() else edge], dtype=values.dtype)


def _table(snapshot: Snapshot) -> dict[str, Any]:
    protocol, metadata = snapshot.protocol, snapshot.metadata
    features = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    found: dict[str, Any] = json.loads(
        json.dumps(
            {
                "protocol": {
                    "minReaderVersion": protocol.min_reader_version,
                    "minWriterVersion": protocol.min_writer_version,
                    **{name: listed for name, listed in features.items() if listed is not None},
                },
                "metaData": {
                    "id": metadata.id,
                    "name": metadata.name,
                    "description": metadata.description,
                    "format": {"provider": metadata.provider, "options": dict(metadata.format_options)},
                    "schemaString": metadata.schema_string,
                    "partitionColumns": metadata.partition_columns,
                    "configuration": dict(metadata.configuration),
                    "createdTime": metadata.created_time,
                },
            }
        )
    )
    return found
