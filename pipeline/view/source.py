"""The tables that a view reads: which version is the latest, and what the commits since another have done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.errors import Unavailable, Unsupported
from pipeline.view.bounds import is_plain, require_within
from pipeline.view.plan import SourceState, SourceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ACTIONS: Final = (
    "add struct<path: string, dataChange: boolean, deletionVector: struct<storageType: string>>, "
    "remove struct<dataChange: boolean>, metaData struct<id: string>, "
    "protocol struct<minReaderVersion: int>, _corrupt_record string"
)
_NO_TABLE: Final = ("DELTA_TABLE_ONLY_OPERATION", "DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST")
_GLOB: Final = re.compile(r"([\\*?{}\[\]])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What some commits have done to a table, counted. Commits that only move rows about count as nothing."""

    added: int = 0
    # Files that came with rows marked as deleted, as a restored one may.
    added_in_part: int = 0
    removed: int = 0
    # Of the schema, the properties or the features.
    redefined: int = 0
    # Files that may be outside of the table, and what we read otherwise than Delta might.
    odd: int = 0

    @property
    def is_append(self) -> bool:
        return not (self.added_in_part or self.removed or self.redefined or self.odd)


def latest(spark: SparkSession, source: SourceTable) -> SourceState:
    """Return a source's version and id, as of now."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 -- half a second, and not everywhere

    try:
        return SourceState(version=latest_version(spark, source.url), id=_table_id(spark, source.url))
    except AnalysisException as exc:
        if exc.getCondition() in _NO_TABLE:
            raise Unsupported(f"table {source.name} is not there, or is no Delta table") from exc
        raise


def confirm(spark: SparkSession, source: SourceTable, state: SourceState) -> None:
    """Raise ``Unavailable`` where another table has taken the place of the one that was read."""
    if _table_id(spark, source.url) != state.id:
        raise Unavailable(f"table {source.name} was replaced while it was read")


def latest_version(spark: SparkSession, url: str) -> int:
    (row,) = spark.sql(f"DESCRIBE HISTORY {_quoted(url)} LIMIT 1").select("version").collect()
    version: int = row.version
    return version


def read_source(spark: SparkSession, source: SourceTable, version: int) -> DataFrame:
    """Return a version of a source; raise ``Unsupported`` where its log leads elsewhere."""
    frame = read_version(spark, source.url, version)
    require_within(frame, source)
    return frame


def read_version(spark: SparkSession, url: str, version: int) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", version).load(url)


def changes_since(spark: SparkSession, url: str, after: int, until: int) -> Changes | None:
    """Count what the commits after one version and until another did; None where one of them is gone."""
    commits = [
        f"{_GLOB.sub(_ESCAPED, url.rstrip('/'))}/_delta_log/{at:020}.json"
        for at in range(after + 1, until + 1)
    ]
    return _counted(spark, commits) if commits else Changes()


_ESCAPED: Final = r"\\\1"


def _counted(spark: SparkSession, commits: Sequence[str]) -> Changes | None:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 -- half a second, and not everywhere
    from pyspark.sql.functions import count_if, expr  # noqa: PLC0415

    conditions = {
        "added": "add.dataChange",
        "added_in_part": "add.dataChange AND add.deletionVector IS NOT NULL",
        "removed": "remove.dataChange",
        "redefined": "metaData IS NOT NULL OR protocol IS NOT NULL",
        "odd": f"_corrupt_record IS NOT NULL OR NOT coalesce({is_plain('add.path')}, add IS NULL)",
    }
    try:
        actions = spark.read.schema(_ACTIONS).json(list(commits))
        (row,) = actions.agg(
            *(count_if(expr(text)).alias(name) for name, text in conditions.items())
        ).collect()
    except AnalysisException as exc:
        if exc.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    return Changes(**row.asDict())


def _table_id(spark: SparkSession, url: str) -> str:
    (row,) = spark.sql(f"DESCRIBE DETAIL {_quoted(url)}").select("id").collect()
    table_id: str = row.id
    return table_id


def _quoted(url: str) -> str:
    return "delta.`" + url.replace("`", "``") + "`"
