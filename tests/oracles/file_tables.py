"""Runs in the clients' environment: tables whose files are vectored, cloned, joined, restored or gone."""

from __future__ import annotations

from collections.abc import Mapping

from tests.oracles.spark_table import SparkTable
from tests.oracles.statements import MERGE, VECTORS, Write, create, insert


def _clone(table: SparkTable) -> None:
    source = f"delta.`{table.path.parent / 'source'}`"
    table.spark.sql(f"CREATE TABLE {source} (id BIGINT, s STRING) USING delta TBLPROPERTIES ({VECTORS})")
    table.spark.sql(f"INSERT INTO {source} SELECT id, 'of the source' FROM range(0, 20, 1, 2)")
    table.spark.sql(f"DELETE FROM {source} WHERE id = 5")
    # Otherwise Spark looks for a table in every directory above.
    (table.path / "_delta_log").mkdir(parents=True)
    table.run(f"CREATE TABLE @T SHALLOW CLONE {source}")
    insert(table, 100, 3)
    table.run("DELETE FROM @T WHERE id % 7 = 1")


def _clustered(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", clause="CLUSTER BY (id)")
    insert(table, 0, 8)
    insert(table, 8, 8)
    table.run("OPTIMIZE @T", "ALTER TABLE @T CLUSTER BY (s)")
    insert(table, 16, 8)
    table.run("OPTIMIZE @T FULL")


def _dropped_feature(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", VECTORS)
    insert(table, 0, 10)
    table.run(
        "DELETE FROM @T WHERE id = 3",
        "ALTER TABLE @T DROP FEATURE deletionVectors",
    )
    insert(table, 10, 3)


def _emptied(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING")
    insert(table, 0, 5)
    table.run("DELETE FROM @T")


def _empty(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING, part INT", clause="PARTITIONED BY (part)")


def _random_prefixes(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", "'delta.randomizeFilePrefixes' = 'true'")
    insert(table, 0, 4)
    insert(table, 4, 4)


def _restored(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", VECTORS, "'delta.checkpointInterval' = '4'")
    insert(table, 0, 5)
    insert(table, 5, 5)
    table.run(
        "DELETE FROM @T WHERE id % 2 = 0",
        "OPTIMIZE @T",
        "RESTORE TABLE @T TO VERSION AS OF 2",
        "RESTORE TABLE @T TO VERSION AS OF 3",
        "RESTORE TABLE @T TO VERSION AS OF 1",
    )


def _row_tracking(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", "'delta.enableRowTracking' = 'true'", VECTORS)
    insert(table, 0, 5)
    insert(table, 5, 5)
    table.run("UPDATE @T SET s = 'updated' WHERE id = 3", MERGE, "OPTIMIZE @T")
    table.checkpoint()
    insert(table, 10, 2)


def _vacuumed(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", VECTORS)
    insert(table, 0, 5)
    insert(table, 5, 5)
    table.run("OPTIMIZE @T", "DELETE FROM @T WHERE id = 1", "VACUUM @T RETAIN 0 HOURS")
    insert(table, 10, 5)
    table.run("VACUUM @T LITE RETAIN 0 HOURS")


def _vectors(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", VECTORS)
    table.run("INSERT INTO @T SELECT id, 'row' FROM range(0, 40, 1, 2)")
    insert(table, 100, 10)
    table.run(
        "DELETE FROM @T WHERE id = 7",
        "DELETE FROM @T WHERE id % 10 = 3",
        "UPDATE @T SET s = 'updated' WHERE id % 9 = 4",
        MERGE,
    )
    table.checkpoint()
    table.run(
        "DELETE FROM @T WHERE id >= 100",
        "REORG TABLE @T APPLY (PURGE)",
        "DELETE FROM @T WHERE id = 8",
    )


FILE_TABLES: Mapping[str, Write] = {
    "clone": _clone,
    "clustered": _clustered,
    "dropped_feature": _dropped_feature,
    "emptied": _emptied,
    "empty": _empty,
    "random_prefixes": _random_prefixes,
    "restored": _restored,
    "row_tracking": _row_tracking,
    "vacuumed": _vacuumed,
    "vectors": _vectors,
}
