"""The actions of a log as frames: what its files add and remove, read by as many machines as there are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from gateway.errors import Unsupported

VECTOR: Final = "vector"
VERSION: Final = "version"

_DELETION_VECTOR: Final = (
    "struct<storageType:string,pathOrInlineDv:string,offset:int,sizeInBytes:int,cardinality:bigint>"
)
# As the gateway holds them, in this order.
ADD: Final = {
    "path": "string",
    "partitionValues": "map<string,string>",
    "size": "bigint",
    "modificationTime": "bigint",
    "dataChange": "boolean",
    "stats": "string",
    "tags": "map<string,string>",
    "deletionVector": _DELETION_VECTOR,
    "baseRowId": "bigint",
    "defaultRowCommitVersion": "bigint",
    "clusteringProvider": "string",
}
_ADD: Final = ",".join(f"{name}:{kind}" for name, kind in ADD.items())
_REMOVE: Final = f"path:string,deletionVector:{_DELETION_VECTOR}"
_PROTOCOL: Final = (
    "minReaderVersion:int,minWriterVersion:int,readerFeatures:array<string>,writerFeatures:array<string>"
)
_METADATA: Final = (
    "id:string,name:string,description:string,format:struct<provider:string,options:map<string,string>>,"
    "schemaString:string,partitionColumns:array<string>,configuration:map<string,string>,createdTime:bigint"
)
_TABLE: Final = f"protocol struct<{_PROTOCOL}>, metaData struct<{_METADATA}>"
_ACTIONS: Final = ("protocol", "metaData")
_CORRUPT: Final = "_corrupt"
_LINE: Final = f"add struct<{_ADD}>, remove struct<{_REMOVE}>, {_TABLE}, {_CORRUPT} string"
# Typed statistics, as far as it takes to tell that there are some.
_CHECKPOINT: Final = f"add struct<{_ADD},stats_parsed:struct<numRecords:bigint>>, {_TABLE}"
_GLOB: Final = re.compile(r"([\\{}\[\]*?])")


def read_commits(spark: SparkSession, urls: Sequence[str]) -> DataFrame:
    """Return the actions of commits, each with the version that its file's name says."""
    lines = spark.read.option("lineSep", "\n").text(_literal(urls)).select("value", "_metadata.file_name")
    version = sf.regexp_extract("file_name", "^([0-9]{20})", 1).cast("bigint")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    action = sf.from_json("value", _LINE, options)
    parsed = lines.filter(sf.trim("value") != "").select(version.alias(VERSION), action.alias("action"))
    return parsed.select(VERSION, "action.*")


def read_checkpoint(spark: SparkSession, urls: Sequence[str]) -> DataFrame:
    """Return the adds of a checkpoint's files, in parquet or in JSON, and what it says of the table."""
    frames = []
    if in_parquet := [url for url in urls if not url.endswith(".json")]:
        frames.append(spark.read.schema(_CHECKPOINT).parquet(*_literal(in_parquet)))
    if in_json := [url for url in urls if url.endswith(".json")]:
        lines = read_commits(spark, in_json)
        add = sf.when(
            sf.col("add.path").isNotNull(),
            sf.struct("add.*", sf.lit(None).cast("struct<numRecords:bigint>").alias("stats_parsed")),
        )
        frames.append(lines.select(add.alias("add"), "protocol", "metaData"))
    found = frames[0]
    for other in frames[1:]:
        found = found.unionByName(other)
    return found


def vector_id(vector: Column) -> Column:
    """Return what identifies a deletion vector, as the Delta protocol derives it; empty without one."""
    place = sf.concat(vector["storageType"], vector["pathOrInlineDv"])
    offset = sf.coalesce(sf.concat(sf.lit("@"), vector["offset"].cast("string")), sf.lit(""))
    return sf.coalesce(sf.concat(place, offset), sf.lit(""))


def adds_of(checkpoint: DataFrame) -> DataFrame:
    """Return the files that a checkpoint lists."""
    adds = checkpoint.filter("add is not null").select("add.*")
    return adds.withColumn(VECTOR, vector_id(sf.col("deletionVector")))


def last_changes(commits: DataFrame) -> DataFrame:
    """Return each file that commits touch as the last of them has it; ``add`` is null where it is gone.

    Within one commit, what it adds outlives what it removes.
    """
    is_add = sf.col("add").isNotNull()
    place = sf.struct(VERSION, is_add.alias("is_add"), sf.monotonically_increasing_id().alias("line"))
    files = commits.filter("add is not null or remove is not null").select(
        sf.coalesce("add.path", "remove.path").alias("path"),
        vector_id(
            sf.when(is_add, sf.col("add.deletionVector")).otherwise(sf.col("remove.deletionVector"))
        ).alias(VECTOR),
        "add",
        place.alias("place"),
    )
    return files.groupBy("path", VECTOR).agg(sf.max_by("add", "place").alias("add"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What commits or a checkpoint say besides their files, found in one look at all of them."""

    # The last protocol and metaData actions by name, where there are any.
    table: dict[str, dict[str, Any]]
    adds: int


def look_at_commits(commits: DataFrame) -> Said:
    """Return what commits say; refuse those with a line that is no action, or a file without path or size."""
    no_path = "add is not null and (add.path is null or add.size is null)"
    is_damaged = sf.expr(f"{_CORRUPT} is not null or {no_path} or remove is not null and remove.path is null")
    row = commits.agg(
        sf.min(sf.when(is_damaged, sf.col(VERSION))),
        *(
            sf.max_by(sf.to_json(action), sf.when(sf.col(action).isNotNull(), sf.col(VERSION)))
            for action in _ACTIONS
        ),
        sf.count("add.path"),
    ).collect()[0]
    if row[0] is not None:
        raise Unsupported(f"the log is damaged: version {row[0]} has a line that is no action")
    return Said(table=_table(row[1:3]), adds=row[3])


def look_at_checkpoint(checkpoint: DataFrame) -> Said:
    """Return what a checkpoint says; refuse one that has values by type only, and no texts of them."""
    no_stats = sf.expr(
        "add.path is not null and add.stats is null and add.stats_parsed.numRecords is not null"
    )
    no_values = sf.expr("add.path is not null and add.partitionValues is null")
    no_path = sf.expr("add is not null and (add.path is null or add.size is null)")
    row = checkpoint.agg(
        *(sf.first(sf.to_json(action), ignorenulls=True) for action in _ACTIONS),
        sf.count("add.path"),
        *(sf.count(sf.when(lacks, 1)) for lacks in (no_stats, no_values, no_path)),
    ).collect()[0]
    table = _table(row[:2])
    is_partitioned = bool(table.get("metaData", {}).get("partitionColumns"))
    if row[5]:
        raise Unsupported("the log is damaged: its checkpoint adds a file without a path or a size")
    if row[3] or (is_partitioned and row[4]):
        raise Unsupported(
            "the table's checkpoint has no texts of statistics or partition values, of which an index is "
            "made; set delta.checkpoint.writeStatsAsJson to true, or leave the table without an index"
        )
    return Said(table=table, adds=row[2])


def _table(texts: Sequence[str | None]) -> dict[str, dict[str, Any]]:
    return {
        action: json.loads(text) for action, text in zip(_ACTIONS, texts, strict=True) if text is not None
    }


def _literal(urls: Sequence[str]) -> list[str]:
    """Return urls of files in the spelling of patterns, of which Spark takes every path for one."""
    return [_GLOB.sub(r"\\\1", url) for url in urls]
