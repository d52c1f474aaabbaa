"""Makes an index of a log: ``spark-submit pipeline/jobs/index.py PLAN.json``, or a request to the runner."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from gateway.domain.job import JobKind
from pipeline.entry import run_file
from pipeline.index.build import IndexBuild
from pipeline.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How values are read and written here, whatever the session is set to otherwise.
_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # Below so many, to list files by another job takes longer than to list them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "500",
    # There is a group for each block that a task reads.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def run(spark: SparkSession, plan: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Make the index that a plan describes; it is in force only when its manifest is published."""
    with _settings(spark):
        return IndexBuild(spark=spark, plan=plan, progress=progress).run()


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


if __name__ == "__main__":
    sys.exit(run_file(JobKind.INDEX, run))
