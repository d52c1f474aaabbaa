"""A row for each block: its keys, and between which values the columns of all its files lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from pipeline.index.actions import vector_id
from pipeline.index.columns import Family, TypedColumn
from pipeline.index.reading import high_of, low_of, point_of

_FILE: Final = "file"
# Plain in every reader's eyes: what has anything else in it takes a look before it is served. A dollar would
# be no end: to Java it also stands before a line's end that comes last.
_ESCAPES: Final = "%(2[0-9A-C]|3[A-F]|40)"
_CHARACTERS: Final = r"^[A-Za-z0-9_~=./-]*\z"
_BLANK_OR_DOTS: Final = r"(^|/)\.{0,2}(/|\z)"
_LOG: Final = "_delta_log"
_RELATIVE: Final = r"^[A-Za-z0-9]{0,64}[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@-]{20}\z"


def find_zones(
    spark: SparkSession,
    url: str,
    name: str,
    columns: Sequence[TypedColumn],
    *,
    schema: StructType | None = None,
) -> DataFrame:
    """Return the zones of the blocks that were written below a url, by their names below the index's."""
    reader = spark.read if schema is None else spark.read.schema(schema)
    rows = reader.parquet(url).withColumn(_FILE, _name_of(sf.col("_metadata.file_path"), name))
    key = sf.struct("path", vector_id(sf.col("deletionVector")).alias("vector"))
    facts = [
        sf.count("*").alias("rows"),
        sf.min(key).alias("first"),
        sf.max(key).alias("last"),
        sf.sum("size").alias("size"),
        sf.count("deletionVector.storageType").alias("vectors"),
        sf.bool_or(_is_odd()).alias("odd"),
        # With one that gathers values all are aggregated by hash, and texts need no sorting of all rows.
        sf.collect_set("typed").alias("gathered"),
    ]
    for number, column in enumerate(columns):
        facts += _bounds(number, column)
    found = rows.groupBy(_FILE).agg(*facts)
    return found.join(_contents(spark, url, name), _FILE).select(
        _FILE,
        "length",
        "sha256",
        "rows",
        sf.col("first.path").alias("first_path"),
        sf.col("first.vector").alias("first_vector"),
        sf.col("last.path").alias("last_path"),
        sf.col("last.vector").alias("last_vector"),
        "size",
        "vectors",
        "odd",
        *(f"{kind}{number}" for number in range(len(columns)) for kind in ("low", "high", "nulls", "values")),
    )


def write_zones(spark: SparkSession, zones: DataFrame, url: str, name: str) -> tuple[str, int, str]:
    """Write zones in the order of their keys; return the name, the length and the digest of their file."""
    ordered = zones.coalesce(1).sortWithinPartitions("first_path", "first_vector")
    ordered.write.option("compression", "zstd").parquet(url)
    [row] = _contents(spark, url, name).collect()
    return row[_FILE], row["length"], row["sha256"]


def _contents(spark: SparkSession, url: str, name: str) -> DataFrame:
    """Return name, length and digest of each file below a url."""
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.option("pathGlobFilter", "*.parquet").load(url)
    return files.select(
        _name_of(sf.col("path"), name).alias(_FILE), "length", sf.sha2("content", 256).alias("sha256")
    )


def _name_of(path: Column, name: str) -> Column:
    return sf.concat(sf.lit(f"{name}/"), sf.regexp_extract(path, f"/{name}/(.+)$", 1))


def _bounds(number: int, column: TypedColumn) -> list[Column]:
    """Return the bounds of a column in all files of a block; null where those of one are not known."""
    low, high, nulls, values = _points(column) if column.partition else _ranges(number, column)
    unknown = sf.bool_or(values & (low.isNull() | high.isNull()))
    return [
        sf.when(~unknown, sf.min(sf.when(values, low))).alias(f"low{number}"),
        sf.when(~unknown, sf.max(sf.when(values, high))).alias(f"high{number}"),
        sf.bool_or(nulls).alias(f"nulls{number}"),
        sf.bool_or(values).alias(f"values{number}"),
    ]


def _ranges(number: int, column: TypedColumn) -> tuple[Column, Column, Column, Column]:
    typed, records, nulls = sf.col("typed"), sf.col("records"), sf.col(f"nulls{number}")
    low = sf.when(typed, low_of(sf.col(f"min{number}"), column.family))
    high = sf.when(typed, high_of(sf.col(f"max{number}"), column.family))
    may_be_null = ~typed | sf.coalesce(nulls != 0, sf.lit(True))  # noqa: FBT003
    may_have_values = ~typed | sf.coalesce(nulls != records, sf.lit(True))  # noqa: FBT003
    return low, high, may_be_null, may_have_values


def _points(column: TypedColumn) -> tuple[Column, Column, Column, Column]:
    text = sf.try_element_at("partitionValues", sf.lit(column.path[0]))
    low, high = point_of(text, column.family)
    is_empty = text.isNull() | (text == "")
    if column.family is Family.TEXT:
        # An empty text is null to some readers, and a text to others.
        return low, high, sf.coalesce(is_empty, sf.lit(True)), text.isNotNull()  # noqa: FBT003
    return low, high, is_empty | low.isNull(), ~is_empty


def _is_odd() -> Column:
    path, vector = sf.col("path"), sf.col("deletionVector")
    unescaped = sf.when(sf.contains(path, sf.lit("%")), sf.regexp_replace(path, _ESCAPES, "")).otherwise(path)
    plain = unescaped.rlike(_CHARACTERS)
    is_data = plain & ~path.rlike(_BLANK_OR_DOTS) & ~sf.contains(sf.lower(path), sf.lit(_LOG))
    kind, place = vector["storageType"], vector["pathOrInlineDv"]
    is_sized = sf.coalesce((vector["sizeInBytes"] >= 0) & (vector["cardinality"] >= 0), sf.lit(False))  # noqa: FBT003
    is_placed = (kind == "i") & place.isNotNull() | (kind == "u") & place.rlike(_RELATIVE)
    is_sound = kind.isNull() | sf.coalesce(is_placed, sf.lit(False)) & is_sized  # noqa: FBT003
    return ~(is_data & is_sound)
