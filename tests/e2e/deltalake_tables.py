"""Runs in the clients' environment: a table for each thing that deltalake can write into a log or a file."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    Schema,
    TableFeatures,
    Transaction,
    convert_to_deltalake,
    write_deltalake,
)
from deltalake.schema import PrimitiveType

Write = Callable[[str], None]

FEED = {"delta.enableChangeDataFeed": "true"}
_PARTS = ("plain", "north", None)
# What a path and a URL must escape, each in its own way.
_SPECIAL = (
    *("a/b", "100%", "%20", "a=b", "#?&+", "a:b;c", "'single'", '"double"', "back\\slash", " edge "),
    *("Grüße", "東京", "line\nend", "null", "__HIVE_DEFAULT_PARTITION__", "{x}[y]|^~`", None),
)


def rows(first: int, count: int) -> pa.Table:
    """Return rows with ids from one on, over all partitions."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array((_PARTS[id_ % len(_PARTS)] for id_ in ids), pa.string()),
            "s": pa.array((f"text {id_}" if id_ % 4 else None for id_ in ids), pa.string()),
        }
    )


def merge(table: DeltaTable, source: pa.Table) -> None:
    """Delete, update and insert, by what the source holds."""
    (
        table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_delete("s.id % 3 = 0")
        .when_matched_update({"s": "'merged'"})
        .when_not_matched_insert({"id": "s.id", "part": "s.part", "s": "s.s"})
        .execute()
    )


def replace_plain(directory: str, first: int) -> None:
    """Put other rows in the place of one partition's."""
    plain = rows(first, 9).filter(pc.field("part") == _PARTS[0])
    write_deltalake(directory, plain, mode="overwrite", predicate=f"part = '{_PARTS[0]}'")


def vacuum(table: DeltaTable, *, hours: int) -> None:
    table.vacuum(hours, dry_run=False, enforce_retention_duration=False)


def _all_types(directory: str) -> None:
    schema = pa.schema(
        {
            "id": pa.int64(),
            "b": pa.int8(),
            "h": pa.int16(),
            "i": pa.int32(),
            "f": pa.float32(),
            "d": pa.float64(),
            "m": pa.decimal128(10, 2),
            "w": pa.decimal128(38, 10),
            "s": pa.string(),
            "x": pa.binary(),
            "t": pa.bool_(),
            "day": pa.date32(),
            "at": pa.timestamp("us", "UTC"),
        }
    )
    high = (
        *(1, 127, 32767, 2**31 - 1, 1.5, -2.25, Decimal("12345678.91"), Decimal("1.0000000001")),
        *("text", b"\x00\xff", True, date(2024, 2, 29), datetime(2024, 2, 29, 12, 34, 56, 789012, UTC)),
    )
    low = (
        *(-(2**53), -128, -32768, -(2**31), float("-inf"), float("nan"), Decimal("-0.01"), Decimal(-7)),
        *("", b"", False, date(1969, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    )
    text = '東京 "quoted" \\ \u2028 \u0085 line\n'
    for found in (_named(schema, high), _named(schema, low), [{"id": 3, "s": text}, {"id": 4}]):
        write_deltalake(directory, pa.Table.from_pylist(found, schema), mode="append")
    DeltaTable(directory).update({"i": "7", "day": "DATE '2000-01-01'"}, predicate="id = 4")


def _append_only(directory: str) -> None:
    write_deltalake(directory, rows(0, 4), configuration={"delta.appendOnly": "true"})
    # A stream's batch has a number, which the log keeps.
    batch = CommitProperties(app_transactions=[Transaction("stream", 1)], custom_metadata={"batch": "1"})
    write_deltalake(directory, rows(4, 4), mode="append", commit_properties=batch)


def _checkpoints(directory: str) -> None:
    every_third = {"delta.checkpointInterval": "3"}
    write_deltalake(directory, rows(0, 3), partition_by=["part"], configuration=every_third)
    for number in range(1, 6):
        write_deltalake(directory, rows(3 * number, 3), mode="append")
        DeltaTable(directory).delete(f"id = {3 * number}")
    DeltaTable(directory).create_checkpoint()
    write_deltalake(directory, rows(30, 3), mode="append")


def _compacted_log(directory: str) -> None:
    for number in range(5):
        write_deltalake(directory, rows(3 * number, 3), mode="append")
    DeltaTable(directory).delete("id % 2 = 0")
    DeltaTable(directory).compact_logs(1, 4)
    write_deltalake(directory, rows(20, 3), mode="append")


def _constrained(directory: str) -> None:
    schema = Schema(
        [
            Field("id", PrimitiveType("long"), nullable=False),
            Field("part", PrimitiveType("string")),
            Field("s", PrimitiveType("string"), metadata={"comment": "what it says"}),
        ]
    )
    DeltaTable.create(directory, schema, name="constrained", description="it has rules")
    table = DeltaTable(directory)
    table.alter.add_constraint({"small": "id < 1000"})
    write_deltalake(table, rows(0, 4).cast(_required_id()), mode="append")
    table = DeltaTable(directory)
    table.alter.drop_constraint("small")
    table.alter.drop_column_not_null("id")
    table.alter.set_table_name("free")
    table.alter.set_table_description("it has none")
    table.alter.set_column_metadata("id", {"comment": "who it is"})
    write_deltalake(directory, rows(5000, 2), mode="append")


def _converted(directory: str) -> None:
    for part in ("a", "b"):
        place = Path(directory, f"part={part}")
        place.mkdir(parents=True)
        pq.write_table(rows(ord(part), 3).drop_columns(["part"]), place / "rows.parquet")
    partition = Schema([Field("part", PrimitiveType("string"))])
    convert_to_deltalake(directory, partition_by=partition, partition_strategy="hive")
    write_deltalake(directory, rows(0, 3), mode="append")


def _emptied(directory: str) -> None:
    write_deltalake(directory, rows(0, 0))
    write_deltalake(directory, rows(0, 6), mode="append")
    DeltaTable(directory).delete()
    write_deltalake(directory, rows(6, 3), mode="append")


def _evolving(directory: str) -> None:
    write_deltalake(directory, rows(0, 3), partition_by=["part"])
    wider = rows(3, 3).append_column("extra", pa.array([1.5, None, 2.5]))
    write_deltalake(directory, wider, mode="append", schema_mode="merge")
    table = DeltaTable(directory)
    table.alter.add_columns([Field("day", PrimitiveType("date")), Field("n", PrimitiveType("integer"))])
    write_deltalake(directory, rows(6, 3), mode="append", schema_mode="merge")
    DeltaTable(directory).update({"day": "DATE '2024-02-29'", "n": "3"}, predicate="id > 4")
    narrow = pa.table({"id": pa.array([1, 2]), "other": pa.array([[1, 2], None])})
    write_deltalake(directory, narrow, mode="overwrite", schema_mode="overwrite", partition_by=[])
    source = pa.table({"id": pa.array([2, 3]), "late": pa.array(["x", "y"])})
    (
        DeltaTable(directory)
        .merge(source, "t.id = s.id", source_alias="s", target_alias="t", merge_schema=True)
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


def _feature_names(directory: str) -> None:
    write_deltalake(directory, rows(0, 6))
    features = [
        *(TableFeatures.DeletionVectors, TableFeatures.ColumnMapping, TableFeatures.TimestampWithoutTimezone),
        *(TableFeatures.V2Checkpoint, TableFeatures.AppendOnly, TableFeatures.Invariants),
    ]
    DeltaTable(directory).alter.add_feature(features, allow_protocol_versions_increase=True)
    DeltaTable(directory).delete("id = 2")
    DeltaTable(directory).create_checkpoint()
    write_deltalake(directory, rows(6, 3), mode="append")


def _feed(directory: str) -> None:
    write_deltalake(directory, rows(0, 12), configuration=FEED)
    _change_in_every_way(directory)


def _feed_partitioned(directory: str) -> None:
    write_deltalake(directory, rows(0, 12), partition_by=["part"], configuration=FEED)
    _change_in_every_way(directory)
    DeltaTable(directory).delete("part = 'plain'")


def _feed_evolving(directory: str) -> None:
    write_deltalake(directory, rows(0, 6), configuration=FEED)
    DeltaTable(directory).update({"s": "'before'"}, predicate="id = 1")
    wider = rows(6, 3).append_column("extra", pa.array([1, None, 3], pa.int32()))
    write_deltalake(directory, wider, mode="append", schema_mode="merge")
    DeltaTable(directory).update({"extra": "9"}, predicate="id < 3")
    DeltaTable(directory).alter.add_columns([Field("day", PrimitiveType("date"))])
    DeltaTable(directory).delete("id = 7")


def _feed_late(directory: str) -> None:
    write_deltalake(directory, rows(0, 6))
    DeltaTable(directory).delete("id = 1")
    DeltaTable(directory).alter.set_table_properties(FEED)
    DeltaTable(directory).delete("id = 2")
    write_deltalake(directory, rows(6, 3), mode="append")
    DeltaTable(directory).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    DeltaTable(directory).delete("id = 3")


def _feed_mapped(directory: str) -> None:
    properties = {**FEED, "delta.columnMapping.mode": "name"}
    write_deltalake(directory, rows(0, 12), partition_by=["part"], configuration=properties)
    DeltaTable(directory).update({"s": "'updated'"}, predicate="id % 3 = 0")
    DeltaTable(directory).delete("id % 5 = 1")
    merge(DeltaTable(directory), rows(2, 14))
    write_deltalake(directory, rows(30, 3), mode="overwrite")
    DeltaTable(directory).restore(2)


def _feed_special(directory: str) -> None:
    values = _by_special_part()
    write_deltalake(directory, values, partition_by=["part"], configuration=FEED)
    DeltaTable(directory).update({"id": "id + 100"}, predicate="id % 2 = 0")
    DeltaTable(directory).delete("id % 3 = 0")
    write_deltalake(directory, values, mode="overwrite")


def _feed_vacuumed(directory: str) -> None:
    write_deltalake(directory, rows(0, 6), configuration=FEED)
    DeltaTable(directory).update({"s": "'updated'"}, predicate="id = 1")
    DeltaTable(directory).delete("id = 2")
    vacuum(DeltaTable(directory), hours=0)
    write_deltalake(directory, rows(6, 3), mode="append")
    DeltaTable(directory).delete("id = 3")


def _generated(directory: str) -> None:
    doubled = Field("twice", PrimitiveType("long"), metadata={"delta.generationExpression": "id * 2"})
    schema = Schema([Field("id", PrimitiveType("long")), doubled])
    DeltaTable.create(directory, schema)
    for first in (1, 3):
        write_deltalake(directory, rows(first, 2).select(["id"]), mode="append")


def _cleaned_log(directory: str) -> None:
    kept = {"delta.logRetentionDuration": "interval 0 days", "delta.enableExpiredLogCleanup": "false"}
    write_deltalake(directory, rows(0, 3), configuration=kept)
    for number in range(1, 5):
        write_deltalake(directory, rows(3 * number, 3), mode="append")
    DeltaTable(directory).create_checkpoint()
    write_deltalake(directory, rows(20, 3), mode="append")
    DeltaTable(directory).delete("id = 4")
    DeltaTable(directory).cleanup_metadata()


def _mapped(mode: str) -> Write:
    def write(directory: str) -> None:
        properties = {"delta.columnMapping.mode": mode}
        write_deltalake(directory, _deep(0), partition_by=["part"], configuration=properties)
        write_deltalake(directory, _deep(6), mode="append")
        DeltaTable(directory).delete("id = 1")
        DeltaTable(directory).update({"s": "'updated'"}, predicate="id = 3")
        merge(DeltaTable(directory), rows(4, 6))
        DeltaTable(directory).create_checkpoint()
        write_deltalake(directory, _deep(20), mode="overwrite")
        DeltaTable(directory).restore(3)

    return write


def _nested(directory: str) -> None:
    for first in (0, 6):
        write_deltalake(directory, _deep(first), mode="append")
    DeltaTable(directory).delete("id = 7")
    DeltaTable(directory).optimize.compact()


def _no_stats(directory: str) -> None:
    write_deltalake(directory, rows(0, 3), configuration={"delta.dataSkippingNumIndexedCols": "0"})
    write_deltalake(directory, rows(3, 3), mode="append")
    DeltaTable(directory).alter.set_table_properties({"delta.dataSkippingStatsColumns": "id"})
    write_deltalake(directory, rows(6, 3), mode="append")


def _optimized(directory: str) -> None:
    for number in range(4):
        write_deltalake(directory, rows(5 * number, 5), partition_by=["part"], mode="append")
    DeltaTable(directory).optimize.compact(partition_filters=[("part", "=", "plain")])
    DeltaTable(directory).optimize.compact()
    DeltaTable(directory).optimize.z_order(["id", "s"])
    replace_plain(directory, 30)


def _partition_strings(directory: str) -> None:
    write_deltalake(directory, _by_special_part(), partition_by=["part"])
    DeltaTable(directory).delete("part = '100%'")
    DeltaTable(directory).create_checkpoint()
    write_deltalake(directory, pa.table({"id": [99], "part": ["a/b"]}), mode="append")


def _partition_types(directory: str) -> None:
    schema = pa.schema(
        {
            "id": pa.int64(),
            "i": pa.int32(),
            "l": pa.int64(),
            "h": pa.int16(),
            "b": pa.int8(),
            "day": pa.date32(),
            "t": pa.bool_(),
            "m": pa.decimal128(9, 2),
            "w": pa.float64(),
            "at": pa.timestamp("us", "UTC"),
        }
    )
    high = (1, 1, 2**40, 3, 4, date(2024, 2, 29), True, Decimal("1.50"), -2.25)
    # It writes a negative decimal in a way that it cannot read.
    low = (3, -1, -1, -1, -1, date(1969, 12, 31), False, Decimal("0.01"), 1e-10)
    found = [
        *_named(schema, (*high, datetime(2024, 3, 10, 8, 30, 0, 123456, UTC))),
        *_named(schema, (*low, datetime(1960, 1, 1, tzinfo=UTC))),
        {"id": 2},
    ]
    by = [name for name in schema.names if name != "id"]
    write_deltalake(directory, pa.Table.from_pylist(found, schema), partition_by=by)
    write_deltalake(directory, pa.Table.from_pylist(found[:1], schema), mode="append")
    DeltaTable(directory).delete("day = DATE '1969-12-31'")


def _partition_empty(directory: str) -> None:
    values = pa.table({"id": pa.array([1, 2, 3]), "part": pa.array(["", None, "x"])})
    write_deltalake(directory, values, partition_by=["part"])
    write_deltalake(directory, values, mode="append")


def _restored(directory: str) -> None:
    for number in range(3):
        write_deltalake(directory, rows(4 * number, 4), mode="append")
    DeltaTable(directory).delete("id < 6")
    DeltaTable(directory).restore(2)
    write_deltalake(directory, rows(20, 4), mode="overwrite")
    DeltaTable(directory).restore(1)


def _timestamp_ntz(directory: str) -> None:
    texts = pa.array(["2024-01-01 10:00:00.123456", None, "1969-12-31 00:00:00"])
    when = texts.cast(pa.timestamp("us"))
    values = pa.table({"id": pa.array([1, 2, 3]), "at": when, "part": when})
    write_deltalake(directory, values, partition_by=["part"])
    DeltaTable(directory).delete("id = 2")
    DeltaTable(directory).create_checkpoint()
    write_deltalake(directory, values, mode="append")


def _vacuumed(directory: str) -> None:
    for number in range(3):
        write_deltalake(directory, rows(4 * number, 4), mode="append")
    vacuum(DeltaTable(directory), hours=200)
    DeltaTable(directory).delete("id % 2 = 0")
    write_deltalake(directory, rows(12, 4), mode="append")
    DeltaTable(directory).optimize.compact()
    vacuum(DeltaTable(directory), hours=0)
    write_deltalake(directory, rows(20, 2), mode="append")


def _vectors_enabled(directory: str) -> None:
    write_deltalake(directory, rows(0, 6), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(directory).delete("id = 2")
    DeltaTable(directory).update({"s": "'updated'"}, predicate="id = 4")


def _change_in_every_way(directory: str) -> None:
    DeltaTable(directory).update({"s": "'updated'"}, predicate="id % 3 = 0")
    DeltaTable(directory).delete("id % 5 = 1")
    merge(DeltaTable(directory), rows(2, 14))
    write_deltalake(directory, rows(20, 4), mode="append")
    DeltaTable(directory).optimize.compact()
    DeltaTable(directory).create_checkpoint()
    vacuum(DeltaTable(directory), hours=200)
    write_deltalake(directory, rows(30, 3), mode="overwrite")
    DeltaTable(directory).restore(3)
    DeltaTable(directory).optimize.z_order(["id"])
    replace_plain(directory, 40)


def _deep(first: int) -> pa.Table:
    points: list[dict[str, Any] | None] = [
        {"x": 1, "deep": {"y": "in", "at": [1, None, 3]}},
        {"x": None, "deep": {"y": None, "at": []}},
        {"x": 2, "deep": None},
        None,
        *[{"x": 3, "deep": {"y": "", "at": None}}] * 2,
    ]
    pairs = [[("a", 1), ("b", None)], [], None, [("", 0)], [("c", 2)], None]
    listed = [[{"k": "k", "v": [1, 2]}], [], None, [None], [{"k": None, "v": None}], []]
    point = pa.struct({"x": pa.int32(), "deep": pa.struct({"y": pa.string(), "at": pa.list_(pa.int64())})})
    nested = pa.list_(pa.struct({"k": pa.string(), "v": pa.list_(pa.int64())}))
    return (
        rows(first, len(points))
        .append_column("point", pa.array(points, point))
        .append_column("pairs", pa.array(pairs, pa.map_(pa.string(), pa.int32())))
        .append_column("listed", pa.array(listed, nested))
    )


def _named(schema: pa.Schema, row: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(schema.names, row, strict=True))]


def _by_special_part() -> pa.Table:
    ids = pa.array(range(len(_SPECIAL)), pa.int64())
    return pa.table({"id": ids, "part": pa.array(_SPECIAL, pa.string())})


def _required_id() -> pa.Schema:
    schema = rows(0, 0).schema
    return schema.set(0, pa.field("id", pa.int64(), nullable=False))


FEATURE_TABLES: Mapping[str, Write] = {
    "all_types": _all_types,
    "append_only": _append_only,
    "checkpoints": _checkpoints,
    "cleaned_log": _cleaned_log,
    "compacted_log": _compacted_log,
    "constrained": _constrained,
    "converted": _converted,
    "emptied": _emptied,
    "evolving": _evolving,
    "feature_names": _feature_names,
    "feed": _feed,
    "feed_evolving": _feed_evolving,
    "feed_late": _feed_late,
    "feed_mapped": _feed_mapped,
    "feed_partitioned": _feed_partitioned,
    "feed_special": _feed_special,
    "feed_vacuumed": _feed_vacuumed,
    "generated": _generated,
    "mapping_id": _mapped("id"),
    "mapping_name": _mapped("name"),
    "nested": _nested,
    "no_stats": _no_stats,
    "optimized": _optimized,
    "partition_empty": _partition_empty,
    "partition_strings": _partition_strings,
    "partition_types": _partition_types,
    "restored": _restored,
    "timestamp_ntz": _timestamp_ntz,
    "vacuumed": _vacuumed,
    "vectors_enabled": _vectors_enabled,
}
