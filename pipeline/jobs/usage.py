"""Counts usage: ``spark-submit pipeline/jobs/usage.py PLAN.json``, or a request to the runner."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway.domain.job import JobKind
from pipeline.entry import run_file
from pipeline.plan import read_plan
from pipeline.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.usage.batch import Outcome
    from pipeline.usage.tables import UsageTables

# A batch is at most so many segments, where the plan says nothing.
_MAX_FILES: Final = 500
# Segments whose times are older than this, next to the newest, are taken for seen.
_SEEN_FOR: Final = "366d"
# Below the tables' location.
_CHECKPOINT: Final = "_checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePlan:
    """Where segments land and where the tables are, as Spark spells it."""

    landing_url: str
    location_url: str
    max_files_per_trigger: int | None = None
    # Left out: what is there now, and no more.
    continuous_seconds: int | None = None


def run(spark: SparkSession, plan: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Bring the tables up to date, and return what there was to do; a continuous plan goes on for ever."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 -- the runner imports jobs before Spark

    from pipeline.usage.tables import UsageTables  # noqa: PLC0415

    asked = read_plan(UsagePlan, plan)
    tables = UsageTables(spark=spark, url=asked.location_url)
    progress("looking for the tables", 0, 0)
    tables.create()
    outcomes: list[Outcome] = []
    progress("looking for segments", 0, 0)
    try:
        lines = _lines(spark, asked)
    except AnalysisException as exc:
        if exc.getCondition() != "PATH_NOT_FOUND":
            raise
        progress("nothing has landed yet", 0, 0)
        return _summary(outcomes)
    writer = lines.writeStream.foreachBatch(_folding(asked.location_url, outcomes, progress))
    writer = writer.option("checkpointLocation", tables.place(_CHECKPOINT))
    if asked.continuous_seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{asked.continuous_seconds} seconds")
    writer.start().awaitTermination()
    return _summary(outcomes)


def _lines(spark: SparkSession, plan: UsagePlan) -> DataFrame:
    from pyspark.sql import functions as sf  # noqa: PLC0415 -- see above

    source = (
        spark.readStream.format("text")
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.jsonl")
        .option("maxFilesPerTrigger", str(plan.max_files_per_trigger or _MAX_FILES))
        .option("maxFileAge", _SEEN_FOR)
    )
    return source.load(plan.landing_url).select(
        "value",
        sf.col("_metadata.file_path").alias("source_file"),
        sf.col("_metadata.file_block_start").alias("block_start"),
    )


def _folding(
    location_url: str, outcomes: list[Outcome], progress: Progress
) -> Callable[[DataFrame, int], None]:
    def fold_batch(lines: DataFrame, batch: int) -> None:
        from pipeline.usage.batch import fold  # noqa: PLC0415 -- see above
        from pipeline.usage.tables import Batch, UsageTables  # noqa: PLC0415

        tables = UsageTables(spark=lines.sparkSession, url=location_url)
        known = Batch(query=_query_id(tables), number=batch)
        outcome = fold(tables, lines, known)
        outcomes.append(outcome)
        days = ", ".join(day.isoformat() for day in outcome.days)
        progress(f"batch {batch}: {outcome.events:,} events of {days or 'no day'}", len(outcomes), 0)

    return fold_batch


def _query_id(tables: UsageTables) -> str:
    """Return the name that the checkpoint has given to all that is done with it."""
    place = f"{tables.place(_CHECKPOINT)}/metadata"
    return str(json.loads(tables.spark.read.text(place).collect()[0]["value"])["id"])


def _summary(outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        "batches": len(outcomes),
        "lines": sum(outcome.lines for outcome in outcomes),
        "events": sum(outcome.events for outcome in outcomes),
        "repeated": sum(outcome.repeated for outcome in outcomes),
        "quarantined": sum(outcome.quarantined for outcome in outcomes),
        "days": sorted({day.isoformat() for outcome in outcomes for day in outcome.days}),
    }


if __name__ == "__main__":
    sys.exit(run_file(JobKind.USAGE, run))
