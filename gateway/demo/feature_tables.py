"""Sample tables that take a reader who knows features of Delta: each uses one, and has a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import polars as pl

from gateway.demo.schema import Field, struct_of
from gateway.demo.table_builder import Action, TableBuilder
from gateway.demo.table_feature import configuration_of, protocol_of

# Spark goes back no further than an owner has promised to keep files.
_KEPT: Final = {
    "delta.deletedFileRetentionDuration": "interval 36500 days",
    "delta.logRetentionDuration": "interval 36500 days",
}
# Column mapping and change feeds are older than lists of features.
_COLUMN_MAPPING_PROTOCOL: Final = {"minReaderVersion": 2, "minWriterVersion": 5}
_CHANGE_FEED_PROTOCOL: Final = {"minReaderVersion": 1, "minWriterVersion": 4}


def deletion_vectors(directory: Path) -> None:
    """Rows deleted by vectors in one file for two data files, then in the log, then once more."""
    fields = [Field("reading", "long"), Field("celsius", "double")]
    rows = [{"reading": number, "celsius": number / 8} for number in range(1000)]
    table = TableBuilder(directory, fields, **_options("deletionVectors"))
    table.append(rows[:800], files=4)
    table.delete_by_vector(pl.col("reading").is_between(190, 209))
    table.delete_by_vector(pl.col("reading").is_in([399, 600, 799]), "i")
    table.append(rows[800:])
    table.delete_by_vector(pl.col("reading").is_in([0, 500]), prefix="dv")


def column_mapping(directory: Path) -> None:
    """Columns that were renamed, dropped and added, and a partition column that was renamed."""
    fields = [
        Field("id", "long"),
        Field("amount", "double"),
        Field("note", "string"),
        Field("buyer", struct_of(Field("name", "string"), Field("city", "string"))),
        Field("area", "string"),
    ]
    table = TableBuilder(
        directory,
        fields,
        partition_by=["area"],
        **_options("columnMapping", protocol=_COLUMN_MAPPING_PROTOCOL),
    )
    table.append(
        [
            {
                "id": number,
                "amount": number * 1.5,
                "note": "to be dropped",
                "buyer": {"name": f"buyer {number}", "city": "Wien"},
                "area": ("north", "south", None)[number % 3],
            }
            for number in range(30)
        ]
    )
    table.rename_column("amount", "amount in euros").rename_column("area", "region")
    table.drop_column("note").add_columns(Field("note", "long", "has the name of a column that was dropped"))
    table.append(
        [
            {"id": number, "amount in euros": 0.5, "buyer": None, "region": "north", "note": number}
            for number in range(30, 40)
        ]
    )


def change_feed(directory: Path) -> None:
    """An insert, an update, a delete and an insert, with the changes of each."""
    fields = [Field("item", "string"), Field("stock", "integer"), Field("shelf", "string")]
    rows = [
        {"item": f"item {number}", "stock": number, "shelf": ("left", "right")[number % 2]}
        for number in range(12)
    ]
    table = TableBuilder(
        directory,
        fields,
        partition_by=["shelf"],
        **_options("changeDataFeed", protocol=_CHANGE_FEED_PROTOCOL),
    )
    table.create().append(rows[:10])
    table.update(pl.col("stock").is_in(range(4)), stock=pl.col("stock") + 100)
    table.delete(pl.col("item").is_in(["item 8", "item 9"]))
    table.append(rows[10:])


def v2_checkpoint(directory: Path) -> None:
    """A checkpoint with its files in sidecars, times in the commits, and no commits before the checkpoint."""
    table = TableBuilder(
        directory, [Field("number", "long")], **_options("v2Checkpoint", "inCommitTimestamp")
    )
    for number in range(6):
        table.append([{"number": number}])
    table.v2_checkpoint("json", sidecars=2).clean_up(before=5).append([{"number": 6}])


def _options(*features: str, protocol: Action | None = None) -> dict[str, Any]:
    return {
        "protocol": protocol or protocol_of(*features),
        "metadata": {"configuration": {**configuration_of(*features), **_KEPT}},
    }
