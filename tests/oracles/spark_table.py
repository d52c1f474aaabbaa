"""Runs in the clients' environment: a table that Spark writes, and what it says of every version of it."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import VariantVal

from tests.oracles.plain import spell_rows

Said = dict[str, Any]


def always(_: int) -> bool:
    return True


class SparkTable:
    """Whatever is done to it is put down before the next thing is: later, old versions may be gone."""

    def __init__(
        self, spark: SparkSession, directory: Path, wants_rows: Callable[[int], bool] = always
    ) -> None:
        self.spark = spark
        self.path = directory / "table"
        self._file = directory / "said.json"
        self._wants_rows = wants_rows
        self._versions: dict[int, Said] = {}
        self._changes: list[Said] = []
        self._settings: list[str] = []
        directory.mkdir(parents=True)

    @property
    def latest(self) -> int:
        return max(self._versions)

    def metadata_of(self, version: int) -> Said:
        return self._versions[version]["metaData"]

    def run(self, *statements: str) -> None:
        """Run statements of SQL, in which ``@T`` is the table, and put down the versions that they make."""
        for statement in statements:
            self.spark.sql(statement.replace("@T", f"delta.`{self.path}`"))
            self.record()

    def configure(self, name: str, value: str) -> None:
        """Change a setting of Spark's for this table alone."""
        self.spark.conf.set(name, value)
        self._settings.append(name)

    def checkpoint(self) -> None:
        self._log().checkpoint()

    def clean_up_log(self) -> None:
        log = self._log()
        log.doLogCleanup(log.update(False, self._none(), self._none()), self._none())

    def forget(self) -> None:
        """Make Spark read the log anew, as it is in the directory."""
        self._java.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def record(self) -> None:
        """Put down what Spark says of the versions that are new."""
        newest = self._log().update(False, self._none(), self._none())
        first = max(self._versions, default=newest.version() - 1) + 1
        for version in range(first, newest.version()):
            self._versions[version] = self._said(self._log().getSnapshotAt(version, *self._defaults()))
        if newest.version() >= first:
            self._versions[newest.version()] = self._said(newest)

    def record_changes(self, first: int, last: int) -> bool:
        """Put down the changes of a range; tell whether Spark reads it."""
        reader = self.spark.read.format("delta").option("readChangeFeed", "true")
        ranged = reader.option("startingVersion", first).option("endingVersion", last)
        said: Said = {"first": first, "last": last}
        try:
            frame = ranged.load(str(self.path))
            said |= {"columns": frame.columns, "rows": _rows(frame)}
        except Exception as exc:  # noqa: BLE001 -- what Spark refuses, the gateway may refuse as well
            said["error"] = str(exc).partition("]")[0].lstrip("[")
        # A range whose files a vacuum took is nothing to compare.
        if "FILE" not in said.get("error", ""):
            self._changes.append(said)
        return "error" not in said

    def close(self) -> None:
        for name in self._settings:
            self.spark.conf.unset(name)
        self.forget()

    def save(self) -> None:
        history = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.path}`")
        for row in history.select("version", "timestamp", "operation").collect():
            if row.version in self._versions:
                moment = row.timestamp.replace(tzinfo=UTC)
                self._versions[row.version]["timestamp"] = round(moment.timestamp() * 1000)
                self._versions[row.version]["operation"] = row.operation
        for version, state in self._versions.items():
            state["readable"] = self._is_readable(version)
        said = {"versions": self._versions, "changes": self._changes}
        # The file marks the table as complete: it is there as a whole, or not at all.
        incomplete = self._file.with_suffix(".new")
        incomplete.write_text(json.dumps(said))
        incomplete.rename(self._file)

    def _said(self, snapshot: Any) -> Said:
        files = snapshot.allFiles().collect()
        said = {
            "files": [json.loads(file.json())["add"] for file in files],
            "vectors": self._vector_files(files),
            **json.loads(snapshot.protocol().json()),
            **json.loads(snapshot.metadata().json()),
        }
        version = snapshot.version()
        if self._wants_rows(version):
            frame = self.spark.read.format("delta").option("versionAsOf", version).load(str(self.path))
            said |= {"columns": frame.columns, "rows": _rows(frame)}
        return said

    def _vector_files(self, files: Any) -> list[str]:
        """Return the paths, relative to the table, of the files with deletion vectors."""
        root = self._java.org.apache.hadoop.fs.Path(str(self.path))
        vectors = [vector for file in files if (vector := file.deletionVector()) is not None]
        paths = [vector.absolutePath(root).toUri().getPath() for vector in vectors if vector.isOnDisk()]
        return [os.path.relpath(path, self.path) for path in paths]

    def _is_readable(self, version: int) -> bool:
        """Tell whether the log still has a version; only a log that lost its beginning may have lost it."""
        if (self.path / "_delta_log" / f"{0:020}.json").exists():
            return True
        try:
            self._log().getSnapshotAt(version, *self._defaults())
        except Exception:  # noqa: BLE001 -- whichever way Spark says so
            return False
        return True

    @property
    def _java(self) -> Any:
        return self.spark._jvm

    def _log(self) -> Any:
        logs = self._java.org.apache.spark.sql.delta.DeltaLog
        return logs.forTable(self.spark._jsparkSession, str(self.path))

    def _none(self) -> Any:
        return self._java.scala.Option.empty()

    def _defaults(self) -> Sequence[Any]:
        return (self._none(), self._none(), False)


def _rows(frame: DataFrame) -> list[str]:
    return spell_rows(frame.columns, [[_value(value) for value in row] for row in frame.collect()])


def _value(value: Any) -> Any:
    """Return what Spark calls a row as a struct, and what it calls a dictionary as a map's entries."""
    match value:
        case Row():
            return {name: _value(item) for name, item in value.asDict().items()}
        case dict():
            return [[_value(key), _value(item)] for key, item in value.items()]
        case list():
            return [_value(item) for item in value]
        case VariantVal():
            return value.toJson()
        case _:
            return value
