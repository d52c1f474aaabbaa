"""Refreshes a view: ``spark-submit pipeline/jobs/view.py PLAN.json``, or a request to the runner."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gateway.domain.job import JobKind
from pipeline.entry import run_file
from pipeline.progress import Progress
from pipeline.view.plan import read_view_plan
from pipeline.view.refresh import clean_up, forget, refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(spark: SparkSession, plan: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Make what the view shows, and delete what it showed when nobody can have access to that any more."""
    read = read_view_plan(plan)
    result = refresh(spark, read, progress)
    progress("deleting what is not shown any more", 3, 4)
    result = replace(result, deleted=clean_up(spark, read), forgotten=forget(spark, read))
    progress("done", 4, 4)
    return result.as_json()


if __name__ == "__main__":
    sys.exit(run_file(JobKind.VIEW, run))
