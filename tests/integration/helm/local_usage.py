"""Counts usage on this machine, and tells what the tables hold that it and another job made: ``… OWN OTHER``.

Both are directories with tables below; the landing is below the first. A line on standard input says that the
other job is done.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pipeline.jobs.usage import run
from pipeline.session import open_session
from pipeline.usage.schema import TABLES
from tests.integration.pipeline.usage_lake import Lake
from tests.spark import SETTINGS


def main(own: Path, other: Path) -> None:
    spark = open_session(SETTINGS)
    # All files in one batch, as the gateway plans it: each batch merges into every table.
    run(spark, Lake(own).plan | {"max_files_per_trigger": None}, lambda *_: None)
    sys.stdin.readline()
    said = [{name: Lake(each).rows(spark, name) for name in TABLES} for each in (own, other)]
    sys.stdout.write(json.dumps(said, default=repr))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
