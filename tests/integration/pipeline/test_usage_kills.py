"""The usage job killed at moments that are told by what it has written, and run again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.components import SPARK_PIPELINE
from tests.fakes.audit_lines import MALFORMED, Story, parsed
from tests.installed import require_java
from tests.integration.pipeline.runner_process import stopped
from tests.integration.pipeline.usage_lake import Lake
from tests.repository import ROOT
from tests.waiting import eventually

pytestmark = pytest.mark.component(SPARK_PIPELINE)

_DEADLINE = 600
LINES = Story(11).lines(30)
# In their order. The first commit of a table makes it; the commits after that are those of batches.
MOMENTS = {
    "events of the first batch, and nothing derived": "tables/events/_delta_log/00000000000000000001.json",
    "all of the first batch, but for the note that it is done": (
        "tables/anomalies/_delta_log/00000000000000000001.json"
    ),
    "the second batch begun": "tables/_checkpoint/offsets/1",
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> dict[str, Lake]:
    """Return the lake as it is when the job is killed at each of the moments.

    One job comes by all of them: it is stopped there while its tables are copied, and killed at the last.
    """
    lake = Lake(tmp_path_factory.mktemp("lake"))
    for number in range(3):
        # The same malformed lines in each, and one event of another segment.
        lake.land(f"a-{number}", [*LINES[number::3], *list(MALFORMED)[:3], LINES[0]])
    found = {}
    with running_job(lake.directory) as job:
        for moment, seen in MOMENTS.items():
            job.wait_for(lake.directory / seen)
            with stopped(job.pid):
                copy = Lake(tmp_path_factory.mktemp("killed"), landing=lake.directory / "landing")
                shutil.copytree(lake.directory / "tables", copy.directory / "tables")
            found[moment] = copy
    # The last moment is that of a kill: what the killed processes left, and not a copy of it.
    return found | {moment: lake}


@pytest.mark.parametrize("moment", MOMENTS)
def test_job_that_was_killed_loses_and_doubles_nothing(spark, killed, moment):
    lake = killed[moment]
    lake.run(spark)
    lake.assert_tells(spark, parsed(LINES))
    kept = [(row["source_file"], row["line_number"]) for row in lake.rows(spark, "quarantine")]
    assert (len(kept), len(set(kept))) == (9, 9)


@dataclass(frozen=True, slots=True)
class Job:
    """The job in a process of its own, which leads a group of processes."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_for(self, file: Path) -> None:
        def is_written() -> bool:
            if file.exists():
                return True
            assert self.process.poll() is None, f"the job ended before {file} existed\n{self.log.read_text()}"
            return False

        eventually(is_written, f"{file} exists", seconds=_DEADLINE, pause=0.005)


@contextmanager
def running_job(directory: Path) -> Iterator[Job]:
    """Run the job, and kill it and all that it started when the block is left."""
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
    try:
        yield Job(process, log)
    finally:
        # The JVM is in the same group.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
