"""Runs in the clients' environment: tables whose logs have checkpoints and times of every kind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from tests.oracles.spark_table import SparkTable
from tests.oracles.statements import PART_SIZE, VECTORS, Write, create, insert

_TOP_LEVEL = "spark.databricks.delta.checkpointV2.topLevelFileFormat"
_DAY = 24 * 3600


def _in_commit_times(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", "'delta.enableInCommitTimestamps' = 'true'")
    for number in range(4):
        insert(table, number, 1)
    # The files' own times must not count.
    _set_times(table, lambda version: 1_600_000_000 - version * _DAY)


def _in_commit_times_later(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING")
    insert(table, 0, 2)
    insert(table, 2, 2)
    table.run("ALTER TABLE @T SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    insert(table, 4, 2)
    insert(table, 6, 2)


def _log_cleaned(table: SparkTable) -> None:
    kept = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
    create(table, "id BIGINT, s STRING", *(f"'{name}' = 'interval 1 days'" for name in kept))
    for number in range(9):
        insert(table, number, 1)
        if number in {3, 6}:
            table.checkpoint()
    now = time.time()
    _set_times(table, lambda version: now - (20 - version) * _DAY if version < 7 else now + version)
    table.clean_up_log()
    insert(table, 20, 1)


def _multi_part(table: SparkTable) -> None:
    table.configure(PART_SIZE, "3")
    create(table, "id BIGINT, s STRING")
    for number in range(7):
        insert(table, number, 1)
    table.checkpoint()
    table.run("DELETE FROM @T WHERE id = 3")
    insert(table, 9, 1)


def _no_stats(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", "'delta.dataSkippingNumIndexedCols' = '0'")
    insert(table, 0, 4)
    table.configure("spark.databricks.delta.stats.collect", "false")
    insert(table, 4, 4)
    table.checkpoint()
    insert(table, 8, 4)


def _stats_struct(table: SparkTable) -> None:
    create(
        table,
        "id BIGINT, s STRING, d DOUBLE, day DATE, at TIMESTAMP, m DECIMAL(10, 2), n STRUCT<x: INT>, "
        "part DATE",
        "'delta.checkpoint.writeStatsAsStruct' = 'true'",
        "'delta.checkpoint.writeStatsAsJson' = 'false'",
        clause="PARTITIONED BY (part)",
    )
    table.run(
        "INSERT INTO @T VALUES (1, 'a', 1.5, DATE'2024-01-01', TIMESTAMP'2024-01-01 01:02:03.456789', 1.25, "
        "named_struct('x', 1), DATE'2024-05-05')",
        "INSERT INTO @T VALUES (2, NULL, double('nan'), NULL, NULL, NULL, NULL, NULL)",
    )
    table.checkpoint()
    table.forget()
    table.run("INSERT INTO @T (id) VALUES (3)")


def _times_out_of_order(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING")
    for number in range(5):
        insert(table, number, 1)
    times = (1000, 5000, 2000, 2000, 4999, 9000)
    _set_times(table, lambda version: 1_700_000_000 + times[version])


def _v2(table: SparkTable, top_level: str) -> None:
    table.configure(_TOP_LEVEL, top_level)
    table.configure(PART_SIZE, "2")
    create(table, "id BIGINT, s STRING", "'delta.checkpointPolicy' = 'v2'", VECTORS)
    for number in range(4):
        insert(table, number * 2, 2)
    table.run("DELETE FROM @T WHERE id = 3")
    table.checkpoint()
    insert(table, 20, 2)
    table.run("DELETE FROM @T WHERE id < 4")
    table.checkpoint()
    table.forget()
    insert(table, 22, 2)


def _set_times(table: SparkTable, time_of: Callable[[int], float]) -> None:
    """Give the commits other times, and make Spark look at them again."""
    for file in (table.path / "_delta_log").glob("*.json"):
        if file.stem.isdigit():
            os.utime(file, (time_of(int(file.stem)), time_of(int(file.stem))))
    table.forget()


LOG_TABLES: Mapping[str, Write] = {
    "in_commit_times": _in_commit_times,
    "in_commit_times_later": _in_commit_times_later,
    "log_cleaned": _log_cleaned,
    "multi_part": _multi_part,
    "no_stats": _no_stats,
    "stats_struct": _stats_struct,
    "times_out_of_order": _times_out_of_order,
    "v2_json": lambda table: _v2(table, "json"),
    "v2_parquet": lambda table: _v2(table, "parquet"),
}
