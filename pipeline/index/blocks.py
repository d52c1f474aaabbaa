"""Rows of an index: files with what their statistics say by type, in blocks of one file each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from pipeline.index.actions import ADD
from pipeline.index.columns import TypedColumn
from pipeline.index.reading import count_of, value_of

_RECORDS: Final = "numRecords"
_KINDS: Final = ("minValues", "maxValues", "nullCount")
_CORRUPT: Final = "_corrupt"


def with_statistics(files: DataFrame, columns: Sequence[TypedColumn], kept: Sequence[str] = ()) -> DataFrame:
    """Return files in the columns of an index: those of the log, then typed statistics by number.

    ``typed`` is false where the text says more, or other than what can be told for certain. Columns that are
    to be kept come last.
    """
    wanted = {number: column for number, column in enumerate(columns) if not column.partition}
    options = {"columnNameOfCorruptRecord": _CORRUPT}
    parsed = files.withColumn("said", sf.from_json("stats", _shape(list(wanted.values())), options))
    said = sf.col("said")
    records = count_of(said[_RECORDS])
    # Readers differ on halves of characters, which only escapes can name.
    is_certain = [
        sf.col("stats").isNotNull(),
        said[_CORRUPT].isNull(),
        ~sf.contains(sf.col("stats"), sf.lit("\\u")),
    ]
    typed: list[Column] = []
    certain: list[Column] = [*is_certain, records.isNotNull()]
    for number, column in wanted.items():
        low, high, nulls = (_member(said[kind], column.path) for kind in _KINDS)
        values = {
            "min": (low, value_of(low, column.family)),
            "max": (high, value_of(high, column.family)),
            "nulls": (nulls, count_of(nulls)),
        }
        typed += [value.alias(f"{name}{number}") for name, (_, value) in values.items()]
        certain += [text.isNull() | value.isNotNull() for text, value in values.values()]
    sure = certain[0]
    for each in certain[1:]:
        sure = sure & each
    return parsed.select(
        *ADD,
        sf.coalesce(sure, sf.lit(False)).alias("typed"),  # noqa: FBT003
        records.alias("records"),
        *typed,
        *(name for name in kept),
    )


def write_blocks(rows: DataFrame, url: str, block_rows: int, *, by: str | None = None) -> None:
    """Write rows, which are in the order of their keys within each partition, as blocks of so many rows."""
    writer = rows.write.option("maxRecordsPerFile", block_rows).option("compression", "zstd")
    if by is not None:
        writer = writer.partitionBy(by)
    writer.parquet(url)


def _member(struct: Column, path: tuple[str, ...]) -> Column:
    for name in path:
        struct = struct.getField(name)
    return struct


def _shape(columns: Sequence[TypedColumn]) -> StructType:
    """Return the type of statistics with the columns that are wanted, each a text whatever it is in JSON."""
    tree: dict[str, Any] = {}
    for column in columns:
        members = tree
        for name in column.path[:-1]:
            members = members.setdefault(name, {})
        members[column.path[-1]] = None
    kinds = [StructField(kind, _struct(tree)) for kind in _KINDS if tree]
    return StructType([StructField(_RECORDS, StringType()), *kinds, StructField(_CORRUPT, StringType())])


def _struct(tree: dict[str, Any]) -> StructType:
    return StructType(
        [StructField(name, StringType() if below is None else _struct(below)) for name, below in tree.items()]
    )
