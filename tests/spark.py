"""The Spark session of a pytest process, and Delta tables for tests."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.errors import GatewayError
from pipeline.session import SparkSettings, open_session
from tests.class_archive import archive_settings, ensure_archive
from tests.components import SPARK_PIPELINE
from tests.installed import require_java
from tests.spark_for_speed import SMALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_JAVA_OPTIONS = "-XX:+UseSerialGC -Xmn512m -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
FOR_SPEED = {
    **SMALL_TABLES,
    "spark.driver.memory": "1536m",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # S3A's buffers on disk need the file system that writes checksums.
    "spark.hadoop.fs.s3a.fast.upload.buffer": "bytebuffer",
    **archive_settings(_JAVA_OPTIONS),
}
_STARTED: pytest.StashKey[SparkSession | BaseException] = pytest.StashKey()
SETTINGS = SparkSettings(master="local[2]", conf=FOR_SPEED)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Start the JVM before the first test, where one will need it.

    PySpark forks to start it. Later, with the threads of gRPC in this process, such a child may die at once.
    """
    if not session.config.option.collectonly and any(_needs_spark(item) for item in session.items):
        session.config.stash[_STARTED] = _start(session.config)


@pytest.fixture(scope="session")
def spark(pytestconfig) -> Iterator[SparkSession]:
    """The session. A test removes what it registers, or takes a session of its own from `newSession`."""
    started = pytestconfig.stash[_STARTED]
    if isinstance(started, BaseException):
        raise started
    yield started
    started.stop()


def _needs_spark(item: pytest.Item) -> bool:
    # Other tests have a ``spark`` fixture of their own.
    is_ours = any(SPARK_PIPELINE in mark.args for mark in item.iter_markers("component"))
    return is_ours and isinstance(item, pytest.Function) and "spark" in item.fixturenames


def _start(config: pytest.Config) -> SparkSession | BaseException:
    """Return the session, or the exception that the fixture raises."""
    # Spark starts interpreters for what it runs in Python, by whatever is called python3 otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    scratch = Path(tempfile.mkdtemp(prefix="sluice-spark-"))
    config.add_cleanup(lambda: shutil.rmtree(scratch, ignore_errors=True))
    conf = {
        **FOR_SPEED,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    try:
        require_java()
        ensure_archive(_JAVA_OPTIONS)
        return open_session(SparkSettings(master=SETTINGS.master, conf=conf))
    except (GatewayError, pytest.fail.Exception) as exc:
        return exc


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """A table that a test changes as a provider would."""

    spark: SparkSession
    path: Path

    @property
    def name(self) -> str:
        return f"delta.`{self.path}`"

    def insert(self, values: str, columns: str = "") -> None:
        """Insert rows that are written as SQL has them, as one commit."""
        self.sql(f"INSERT INTO {{table}} {columns} VALUES {values}")

    def sql(self, statement: str) -> Any:
        """Run a statement about ``{table}``."""
        return self.spark.sql(statement.format(table=self.name))

    def copied(self, path: Path) -> DeltaTable:
        """Copy the table's directory, so that a test can change the copy."""
        shutil.copytree(self.path, path)
        return DeltaTable(self.spark, path)

    def frame(self) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.path))

    def rows(self, version: int | None = None) -> list[tuple[Any, ...]]:
        """Return all rows, sorted."""
        return rows_of(self.spark, self.path, version)


def create_delta(spark: SparkSession, path: Path, columns: str, clauses: str = "") -> DeltaTable:
    """Create an empty table; ``clauses`` are those of CREATE TABLE, as PARTITIONED BY and TBLPROPERTIES."""
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {clauses}")
    return DeltaTable(spark, path)


def rows_of(spark: SparkSession, place: Path | str, version: int | None = None) -> list[tuple[Any, ...]]:
    """Return all rows of a table, sorted."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return sorted((tuple(row) for row in reader.load(str(place)).collect()), key=repr)
