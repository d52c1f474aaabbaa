"""Runs in the clients' environment: the statements that many tables begin with."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracles.spark_table import SparkTable

Write = Callable[[SparkTable], None]

VECTORS = "'delta.enableDeletionVectors' = 'true'"
FEED = "'delta.enableChangeDataFeed' = 'true'"
NAMES = "'delta.columnMapping.mode' = 'name'"
MERGE = (
    "MERGE INTO @T t USING (SELECT * FROM VALUES (3, 'merged'), (4, NULL), (900, 'new') AS v(id, s)) s "
    "ON t.id = s.id WHEN MATCHED AND s.s IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET s = s.s "
    "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, s.s)"
)
# How many actions make a part of a checkpoint, or a sidecar.
PART_SIZE = "spark.databricks.delta.checkpoint.partSize"


def create(table: SparkTable, columns: str, *properties: str, clause: str = "") -> None:
    given = f"TBLPROPERTIES ({', '.join(properties)})" if properties else ""
    table.run(f"CREATE TABLE @T ({columns}) USING delta {clause} {given}")


def insert(table: SparkTable, first: int, count: int, columns: str = "id, s") -> None:
    rows = ", ".join(f"({number}, 'row {number}')" for number in range(first, first + count))
    table.run(f"INSERT INTO @T ({columns}) VALUES {rows}")
