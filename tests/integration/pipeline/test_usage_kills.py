"""The usage job killed at moments that are told by what it has written, and run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.components import SPARK_PIPELINE
from tests.fakes.audit_lines import MALFORMED, Story, parsed
from tests.installed import require_java
from tests.integration.pipeline.usage_lake import Lake
from tests.repository import ROOT
from tests.waiting import eventually

pytestmark = pytest.mark.component(SPARK_PIPELINE)

_DEADLINE = 600
# The first commit of a table makes it; the commits after that are those of batches.
MOMENTS = {
    "events of the first batch, and nothing derived": "tables/events/_delta_log/00000000000000000001.json",
    "all of the first batch, but for the note that it is done": (
        "tables/anomalies/_delta_log/00000000000000000001.json"
    ),
    "the second batch begun": "tables/_checkpoint/offsets/1",
}


@pytest.mark.parametrize("seen", MOMENTS.values(), ids=MOMENTS)
def test_job_that_was_killed_loses_and_doubles_nothing(spark, tmp_path, seen):
    lake = Lake(tmp_path)
    lines = Story(11).lines(30)
    parts = [lines[number::3] for number in range(3)]
    for number, part in enumerate(parts):
        # The same malformed lines in each, and one event of another segment.
        lake.land(f"a-{number}", [*part, *list(MALFORMED)[:3], lines[0]])
    kill_when(tmp_path, tmp_path / seen)
    lake.run(spark)
    lake.assert_tells(spark, parsed(lines))
    kept = [(row["source_file"], row["line_number"]) for row in lake.rows(spark, "quarantine")]
    assert (len(kept), len(set(kept))) == (9, 9)


def kill_when(directory: Path, file: Path) -> None:
    """Run the job, and kill it and all that it started as soon as a file is there."""
    require_java()
    log = directory / "job.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.pipeline.usage_process", str(directory)],
            cwd=ROOT,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def is_written() -> bool:
        if file.exists():
            return True
        assert process.poll() is None, f"the job ended before {file} was there\n{log.read_text()}"
        return False

    try:
        eventually(is_written, f"{file} exists", seconds=_DEADLINE, pause=0.005)
    finally:
        # The JVM is in the same group.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
