"""The tables that Spark writes, once in a test run, and what it says of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.official_client import PYTHON, require_environment
from tests.e2e.recipient_jars import spark_jars
from tests.oracles.plan import TABLES
from tests.repository import ROOT
from tests.stores.process import running

_DONE = "done.json"
_TIMEOUT_SECONDS = 1800


class SparkTables:
    """Each table has a directory: the table itself, and what Spark says of every version of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.said = cache(self._said)

    def path(self, name: str) -> Path:
        return self.directory / name / "table"

    def _said(self, name: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((self.directory / name / "said.json").read_text())
        said["versions"] = {int(version): state for version, state in said["versions"].items()}
        return said


@pytest.fixture(scope="session")
def spark_tables(tmp_path_factory: pytest.TempPathFactory) -> SparkTables:
    require_environment()
    directory = tmp_path_factory.mktemp("spark-tables")
    write_tables(directory, *TABLES)
    return SparkTables(directory)


def write_tables(directory: Path, *names: str) -> None:
    """Have Spark write tables; it ends with them, for it holds more memory than all other tests."""
    command: list[str | Path] = [PYTHON, "-m", "tests.oracles.spark_tables", spark_jars(), directory, *names]
    env = {
        # Spark's Python hands out times of the process' own zone.
        "TZ": "UTC",
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": str(PYTHON),
        "SPARK_LOCAL_DIRS": str(directory / "scratch"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with running(
        command,
        log_file=directory / "log",
        ready=(directory / _DONE).exists,
        env=env,
        timeout=_TIMEOUT_SECONDS,
    ):
        pass
