"""The tables that Spark writes for the tests, and what Spark reports of each version.

    python -m tests.oracles.fixtures [--pack] [NAME...]

Writing them takes a quarter of an hour, so they are cached by a hash of everything that determines them, and
committed in an archive for machines without that cache. `--pack` writes the archive.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.jars import user_cache
from tests.e2e.official_client import PYTHON, require_environment
from tests.e2e.recipient_jars import spark_jars
from tests.oracles.plan import COMMITS, HISTORIES, MORE_HISTORIES, TABLES
from tests.oracles.table_archive import pack, unpack
from tests.repository import ROOT

# Written last, so that a table with it is complete.
REPORT = "said.json"
# What determines a table's content, besides COMMITS. The rest of the plan only says which tables there are.
GENERATORS = (
    *(
        f"tests/oracles/{name}.py"
        for name in (
            *("spark_tables", "spark_table", "spark_session", "random_history", "statements", "plain"),
            *("feature_tables", "feed_tables", "file_tables", "log_tables", "type_tables"),
        )
    ),
    "tests/spark_for_speed.py",
    "pipeline/jars/pom.xml",
)
# The packages of requirements-client.txt that write the tables.
WRITERS = ("pyspark", "py4j")
_LOG_TAIL = 4000


class SparkTables:
    """Each table has a directory with the table itself and Spark's report of every version."""

    def __init__(self, directory: Path, names: Sequence[str]) -> None:
        self.directory = directory
        self.names = names
        self.said = cache(self._said)

    def path(self, name: str) -> Path:
        return self.directory / name / "table"

    def _said(self, name: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((self.directory / name / REPORT).read_text())
        said["versions"] = {int(version): state for version, state in said["versions"].items()}
        return said


@pytest.fixture(scope="session")
def spark_tables(request: pytest.FixtureRequest) -> SparkTables:
    require_environment()
    return ensure_tables(_requested(request.session.items))


def ensure_tables(names: Sequence[str]) -> SparkTables:
    """Return the tables, after Spark has written those that the cache lacks; concurrent callers wait."""
    directory = cache_directory()
    with _locked(directory) as lock:
        missing = [name for name in names if not (directory / name / REPORT).exists()]
        for name in missing:
            # What an interrupted run left behind.
            shutil.rmtree(directory / name, ignore_errors=True)
        if missing:
            _unpack(directory, missing)
        if missing := [name for name in missing if not (directory / name).exists()]:
            _write(directory, missing, lock)
    return SparkTables(directory, names)


def cache_directory() -> Path:
    """Return the cache's directory for the present generators; those of former ones are not removed."""
    return user_cache(os.environ) / "spark-tables" / generators_digest()


def generators_digest() -> str:
    digest = hashlib.sha256(str(COMMITS).encode())
    for name in GENERATORS:
        digest.update(f"{name}\n".encode() + (ROOT / name).read_bytes())
    pins = (ROOT / "requirements-client.txt").read_text().splitlines()
    digest.update("\n".join(pin for pin in pins if pin.partition("==")[0] in WRITERS).encode())
    return digest.hexdigest()[:16]


def _unpack(directory: Path, names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        unpack(Path(scratch), names, generators_digest())
        # Each table is there as a whole, or not at all.
        for table in Path(scratch).iterdir():
            table.rename(directory / table.name)


@contextmanager
def _locked(directory: Path) -> Iterator[int]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def _write(directory: Path, names: Sequence[str], lock: int) -> None:
    scratch = directory / "scratch"
    env = {
        **os.environ,
        # Spark's Python reports times in the time zone of the process.
        "TZ": "UTC",
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": str(PYTHON),
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    log_file = directory / "log"
    with log_file.open("wb") as log:
        command = [str(PYTHON), "-m", "tests.oracles.spark_tables", str(spark_jars()), str(directory), *names]
        # Spark holds the lock too: it may outlive a test run that is killed.
        status = subprocess.run(
            command, stdout=log, stderr=log, env=env, pass_fds=[lock], check=False
        ).returncode
    shutil.rmtree(scratch, ignore_errors=True)
    if status:
        tail = log_file.read_text(errors="replace")[-_LOG_TAIL:]
        pytest.fail(f"Spark has not written its tables\n{tail}", pytrace=False)


def _requested(items: Sequence[pytest.Item]) -> Sequence[str]:
    """Return the tables that the tests of this run use."""
    functions = [item for item in items if isinstance(item, pytest.Function)]
    using = [item for item in functions if "spark_tables" in item.fixturenames]
    named = {item.callspec.params["name"] for item in using if hasattr(item, "callspec")}
    # A test without a table of its own uses all histories.
    if any(not hasattr(item, "callspec") for item in using):
        named |= set(HISTORIES)
    return [name for name in (*TABLES, *MORE_HISTORIES) if name in named]


def main() -> None:
    parser = argparse.ArgumentParser(description="Have Spark write the tables that the cache lacks.")
    parser.add_argument("names", nargs="*", default=TABLES, metavar="NAME")
    parser.add_argument("--pack", action="store_true", help="write the archive of all tables")
    arguments = parser.parse_args()
    if arguments.pack and arguments.names != TABLES:
        parser.error("--pack takes no names: the archive has all tables")
    tables = ensure_tables(arguments.names)
    if arguments.pack:
        # Not the present hash: a generator may have changed since Spark started.
        pack(tables.directory, TABLES, tables.directory.name)


if __name__ == "__main__":
    main()
