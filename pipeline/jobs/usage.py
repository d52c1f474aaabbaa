"""Counts usage: ``spark-submit pipeline/jobs/usage.py PLAN.json``, or a request to the runner."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gateway.domain.job import JobKind
from gateway.errors import InvalidArgument
from pipeline.entry import run_file
from pipeline.plan import read_plan
from pipeline.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

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
    from pipeline.usage.tables import UsageTables  # noqa: PLC0415 -- the runner imports jobs before Spark

    asked = read_plan(UsagePlan, plan)
    if asked.continuous_seconds is not None and asked.continuous_seconds < 1:
        raise InvalidArgument("plan.continuous_seconds is less than 1")
    tables = UsageTables(spark=spark, url=asked.location_url)
    progress("looking for the tables", 0, 0)
    tables.create()
    totals = _Totals()
    lines = _landed(spark, asked, progress)
    if lines is not None:
        writer = lines.writeStream.foreachBatch(_folding(asked.location_url, totals, progress))
        writer = writer.option("checkpointLocation", tables.place(_CHECKPOINT))
        _triggered(writer, asked).start().awaitTermination()
    return asdict(totals) | {"days": sorted(totals.days)}


@dataclass(slots=True)
class _Totals:
    """What all batches of a run have come to, so far."""

    batches: int = 0
    lines: int = 0
    events: int = 0
    repeated: int = 0
    quarantined: int = 0
    days: set[str] = field(default_factory=set)

    def add(self, outcome: Outcome) -> None:
        self.batches += 1
        self.lines += outcome.lines
        self.events += outcome.events
        self.repeated += outcome.repeated
        self.quarantined += outcome.quarantined
        self.days |= {day.isoformat() for day in outcome.days}


def _landed(spark: SparkSession, plan: UsagePlan, progress: Progress) -> DataFrame | None:
    """Return the lines of what has landed and will; None where nothing has, and nothing is waited for."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 -- see above

    progress("looking for segments", 0, 0)
    while True:
        try:
            return _lines(spark, plan)
        except AnalysisException as exc:
            if exc.getCondition() != "PATH_NOT_FOUND":
                raise
        progress("nothing has landed yet", 0, 0)
        if plan.continuous_seconds is None:
            return None
        time.sleep(plan.continuous_seconds)


def _triggered(writer: DataStreamWriter, plan: UsagePlan) -> DataStreamWriter:
    if plan.continuous_seconds is None:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{plan.continuous_seconds} seconds")


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


def _folding(location_url: str, totals: _Totals, progress: Progress) -> Callable[[DataFrame, int], None]:
    def fold_batch(lines: DataFrame, batch: int) -> None:
        from pipeline.usage.batch import fold  # noqa: PLC0415 -- see above
        from pipeline.usage.tables import Batch, UsageTables  # noqa: PLC0415

        tables = UsageTables(spark=lines.sparkSession, url=location_url)
        known = Batch(query=_query_id(tables), number=batch)
        outcome = fold(tables, lines, known)
        totals.add(outcome)
        days = ", ".join(day.isoformat() for day in outcome.days)
        progress(f"batch {batch}: {outcome.events:,} events of {days or 'no day'}", totals.batches, 0)

    return fold_batch


def _query_id(tables: UsageTables) -> str:
    """Return the name that the checkpoint has given to all that is done with it."""
    place = f"{tables.place(_CHECKPOINT)}/metadata"
    return str(json.loads(tables.spark.read.text(place).collect()[0]["value"])["id"])


if __name__ == "__main__":
    sys.exit(run_file(JobKind.USAGE, run))
