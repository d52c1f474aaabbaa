"""The tables that Spark writes, once in a test run, and what it says of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.official_client import PYTHON, require_environment
from tests.e2e.recipient_jars import spark_jars
from tests.oracles.plan import HISTORIES, MORE_HISTORIES, TABLES
from tests.repository import ROOT
from tests.stores.process import running

_DONE = "done.json"
_START_SECONDS = 120
# Six on a quiet machine.
_TABLE_SECONDS = 30


class SparkTables:
    """Each table has a directory: the table itself, and what Spark says of every version of it."""

    def __init__(self, directory: Path, names: Sequence[str]) -> None:
        self.directory = directory
        self.names = names
        self.said = cache(self._said)

    def path(self, name: str) -> Path:
        return self.directory / name / "table"

    def _said(self, name: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((self.directory / name / "said.json").read_text())
        said["versions"] = {int(version): state for version, state in said["versions"].items()}
        return said


@pytest.fixture(scope="session")
def spark_tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SparkTables:
    require_environment()
    directory = tmp_path_factory.mktemp("spark-tables")
    names = _asked_for(request.session.items)
    write_tables(directory, *names)
    return SparkTables(directory, names)


def _asked_for(items: Sequence[pytest.Item]) -> Sequence[str]:
    """Return the tables that tests of this run are about: Spark takes seconds for each."""
    using = [
        item for item in items if isinstance(item, pytest.Function) and "spark_tables" in item.fixturenames
    ]
    named = {item.callspec.params["name"] for item in using if hasattr(item, "callspec")}
    # A test without a table of its own looks at all histories.
    if any(not hasattr(item, "callspec") for item in using):
        named |= set(HISTORIES)
    return [name for name in (*TABLES, *MORE_HISTORIES) if name in named]


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
        timeout=_START_SECONDS + _TABLE_SECONDS * len(names),
    ):
        pass
