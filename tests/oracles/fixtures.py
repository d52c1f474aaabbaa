"""The tables that Spark writes, once in a test run and beside its other tests, and what it says of them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.official_client import PYTHON, require_environment
from tests.e2e.recipient_jars import spark_jars
from tests.oracles.plan import HISTORIES, MORE_HISTORIES, TABLES
from tests.repository import ROOT
from tests.stores.process import DidNotStart, ServerProcess, running

_DONE = "done.json"
# For tests of a writing that is still under way: it may have begun only now.
_START_SECONDS = 120
# Six on a quiet machine.
_TABLE_SECONDS = 30
_POLL_SECONDS = 0.2
# Spark takes what the other tests leave of the machine: they must not be slower for it.
_BEHIND_ALL_OTHERS = ("nice", "-n", "19")


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


class SparkWriting:
    """Spark at work in a process of its own."""

    def __init__(self, directory: Path, names: Sequence[str], process: ServerProcess) -> None:
        self.tables = SparkTables(directory, names)
        self._process = process

    def wait(self) -> None:
        """Wait until all tables are there."""
        deadline = time.monotonic() + _START_SECONDS + _TABLE_SECONDS * len(self.tables.names)
        while not (self.tables.directory / _DONE).exists():
            if not self._process.is_running() or time.monotonic() > deadline:
                raise DidNotStart(f"Spark has not written its tables\n{self._process.log()[-4000:]}")
            time.sleep(_POLL_SECONDS)


_WRITING = pytest.StashKey[SparkWriting]()
_AT_END = pytest.StashKey[ExitStack]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Last, and otherwise in their order.
    items.sort(key=_uses_tables)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have Spark begin to write what the tests of this run will ask for."""
    names = _asked_for(session.items)
    can_write = PYTHON.exists() and shutil.which("java") and shutil.which("mvn")
    if not names or not can_write or session.config.option.collectonly:
        return
    factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    stack = session.config.stash[_AT_END] = ExitStack()
    writing = stack.enter_context(_writing(factory.mktemp("spark-tables"), names))
    session.config.stash[_WRITING] = writing


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash.get(_AT_END, ExitStack()).close()


@pytest.fixture(scope="session")
def spark_tables(request: pytest.FixtureRequest) -> SparkTables:
    require_environment()
    # Says what is missing where Spark could not be started.
    spark_jars()
    writing = request.config.stash[_WRITING]
    writing.wait()
    # Not kept till the end: it holds more memory than all tests together.
    request.config.stash[_AT_END].close()
    return writing.tables


def _uses_tables(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "spark_tables" in item.fixturenames


def _asked_for(items: Sequence[pytest.Item]) -> Sequence[str]:
    """Return the tables that tests of this run are about: Spark takes seconds for each."""
    using = [item for item in items if isinstance(item, pytest.Function) and _uses_tables(item)]
    named = {item.callspec.params["name"] for item in using if hasattr(item, "callspec")}
    # A test without a table of its own looks at all histories.
    if any(not hasattr(item, "callspec") for item in using):
        named |= set(HISTORIES)
    return [name for name in (*TABLES, *MORE_HISTORIES) if name in named]


@contextmanager
def _writing(directory: Path, names: Sequence[str]) -> Iterator[SparkWriting]:
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
        [*_BEHIND_ALL_OTHERS, *command], log_file=directory / "log", ready=lambda: True, env=env
    ) as process:
        yield SparkWriting(directory, names, process)
