"""Runs in the clients' environment: tables with a change data feed."""

from __future__ import annotations

from collections.abc import Mapping

from tests.oracles.spark_table import SparkTable
from tests.oracles.statements import FEED, MERGE, NAMES, VECTORS, Write, create, insert


def _feed(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING, part INT", FEED, clause="PARTITIONED BY (part)")
    _changes_of_all_kinds(table)
    table.run(
        "INSERT INTO @T VALUES (50, 'there', 7), (51, 'nowhere', NULL)", "DELETE FROM @T WHERE part = 7"
    )
    _record_changes(table)


def _feed_evolving(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", FEED)
    insert(table, 0, 6)
    table.run(
        "UPDATE @T SET s = 'before' WHERE id = 1",
        "ALTER TABLE @T ADD COLUMNS (extra INT)",
        "INSERT INTO @T VALUES (10, 'wide', 1), (11, 'wide', NULL)",
        "UPDATE @T SET extra = 2 WHERE id < 3",
    )
    _record_changes(table)


def _feed_late(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING")
    insert(table, 0, 6)
    table.run(f"ALTER TABLE @T SET TBLPROPERTIES ({FEED})", "DELETE FROM @T WHERE id = 1")
    insert(table, 6, 3)
    _record_changes(table)
    table.record_changes(2, table.latest)


def _feed_mapped(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", FEED, NAMES)
    insert(table, 0, 6)
    table.run("UPDATE @T SET s = 'old name' WHERE id = 2", "ALTER TABLE @T RENAME COLUMN s TO text")
    insert(table, 6, 3, "id, text")
    table.run("UPDATE @T SET text = 'new name' WHERE id % 2 = 0", "ALTER TABLE @T DROP COLUMN text")
    _record_changes(table)
    table.record_changes(4, table.latest - 1)


def _feed_vectors(table: SparkTable) -> None:
    create(table, "id BIGINT, s STRING", FEED, VECTORS)
    _changes_of_all_kinds(table)
    _record_changes(table)


def _changes_of_all_kinds(table: SparkTable) -> None:
    insert(table, 0, 10)
    table.run(
        "UPDATE @T SET s = 'updated' WHERE id % 3 = 0",
        "DELETE FROM @T WHERE id % 5 = 1",
        MERGE,
        "OPTIMIZE @T",
    )
    insert(table, 10, 4)
    table.run("DELETE FROM @T WHERE id >= 10", "RESTORE TABLE @T TO VERSION AS OF 3")


def _record_changes(table: SparkTable) -> None:
    latest = table.latest
    for first, last in ((0, latest), (1, 1), (2, latest - 1), (latest, latest)):
        table.record_changes(first, last)


FEED_TABLES: Mapping[str, Write] = {
    "feed": _feed,
    "feed_evolving": _feed_evolving,
    "feed_late": _feed_late,
    "feed_mapped": _feed_mapped,
    "feed_vectors": _feed_vectors,
}
