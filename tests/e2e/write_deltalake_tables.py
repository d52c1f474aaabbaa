"""Runs in the clients' environment: writes tables with deltalake, and prints what deltalake reads of them."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.e2e.deltalake_histories import HISTORY_TABLES
from tests.e2e.deltalake_tables import FEATURE_TABLES
from tests.oracles.plain import spell_rows


def describe(directory: Path) -> dict[str, Any]:
    """Return what deltalake reads of each version, and of each range of changes if there is a feed."""
    operations = _operations(directory)
    latest = max(operations)
    _set_times(directory, operations)
    versions = {version: _state(directory, version) for version in range(latest + 1)}
    ranges = sorted({(first, last) for first in versions for last in (first, latest)})
    has_feed = any(state.get("feed") for state in versions.values())
    return {
        "operations": operations,
        "versions": versions,
        "changes": [_changes(directory, first, last) for first, last in ranges] if has_feed else [],
    }


def _operations(directory: Path) -> dict[int, dict[str, Any]]:
    """Return the name and the time of each commit that the log still has; each is later than the last."""
    found: dict[int, dict[str, Any]] = {}
    time = 0
    for commit in reversed(DeltaTable(directory).history()):
        time = max(time + 1, commit["timestamp"])
        found[commit["version"]] = {"name": _name_of(commit), "time": time}
    return found


def _name_of(commit: dict[str, Any]) -> str:
    """Return an operation's name; writes of all kinds have one, and differ by what else they tell."""
    if commit["operation"] != "WRITE":
        return str(commit["operation"])
    parameters = commit["operationParameters"]
    return f"WRITE {parameters['mode']}{' WHERE' if 'predicate' in parameters else ''}"


def _set_times(directory: Path, operations: dict[int, dict[str, Any]]) -> None:
    # deltalake takes the time that a commit tells of itself, where the protocol takes that of its file.
    for version, operation in operations.items():
        nanoseconds = operation["time"] * 1_000_000
        os.utime(directory / "_delta_log" / f"{version:020}.json", ns=(nanoseconds, nanoseconds))


def _state(directory: Path, version: int) -> dict[str, Any]:
    try:
        table = DeltaTable(directory, version=version)
    except Exception as exc:  # noqa: BLE001 -- whatever deltalake raises, it is told
        return {"error": str(exc)}
    configuration = table.metadata().configuration
    return {
        **_spelled(lambda: _read(table)),
        "configuration": configuration,
        "feed": configuration.get("delta.enableChangeDataFeed") == "true",
        "fields": json.loads(table.schema().to_json())["fields"],
        "protocol": table.protocol()._asdict(),
    }


def _read(table: DeltaTable) -> pa.Table:
    mapped = "delta.columnMapping.mode" in table.metadata().configuration
    if not mapped and not table.protocol().reader_features:
        return table.to_pyarrow_table()
    # By way of pyarrow it knows no reader feature; by way of DataFusion it does.
    return QueryBuilder().register("shared", table).execute("SELECT * FROM shared").read_all()


def _changes(directory: Path, first: int, last: int) -> dict[str, Any]:
    # It takes the columns of the version that is loaded, which the protocol takes from the range's end.
    found = _spelled(lambda: DeltaTable(directory, version=last).load_cdf(first, last))
    return {"first": first, "last": last, **found}


def _spelled(read: Callable[[], Any]) -> dict[str, Any]:
    try:
        table = pa.table(read())
    except Exception as exc:  # noqa: BLE001 -- whatever deltalake raises, it is told
        return {"error": str(exc)}
    columns = table.schema.names
    return {
        "columns": columns,
        "rows": spell_rows(columns, (list(row.values()) for row in table.to_pylist())),
    }


def main(directory: Path) -> dict[str, Any]:
    said = {}
    for name, write in {**FEATURE_TABLES, **HISTORY_TABLES}.items():
        write(str(directory / name))
        said[name] = describe(directory / name)
    return said


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
