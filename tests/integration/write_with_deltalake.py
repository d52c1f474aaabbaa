"""Runs in the official client's environment: writes a table with deltalake, and prints what it holds."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

_VALUES = ["plain", "two words", "a/b", "100%", "a=b", "#?&+", "Grüße", "東京", 'say "hi"', None]


def write(directory: str) -> None:
    for number in range(4):
        write_deltalake(directory, _rows(number), partition_by=["p"], mode="append")
    table = DeltaTable(directory)
    table.create_checkpoint()
    table.delete("n < 3")
    table.optimize.compact()
    write_deltalake(directory, _rows(9), mode="append")
    table = DeltaTable(directory)
    table.update({"n": "n + 100"}, predicate="n = 9")
    table.create_checkpoint()
    write_deltalake(directory, _rows(5), mode="overwrite")
    write_deltalake(directory, _rows(6), mode="append")


def describe(directory: str) -> dict[int, Any]:
    """Return the live files and the schema of each version."""
    latest = DeltaTable(directory).version()
    return {version: _state(DeltaTable(directory, version=version)) for version in range(latest + 1)}


def _rows(number: int) -> pa.Table:
    return pa.table(
        {"n": pa.array([number + index for index in range(len(_VALUES))]), "p": pa.array(_VALUES)}
    )


def _state(table: DeltaTable) -> dict[str, Any]:
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return {
        "files": sorted([action["path"], action["size_bytes"], action["num_records"]] for action in actions),
        "id": str(table.metadata().id),
        "schema": json.loads(table.schema().to_json()),
    }


if __name__ == "__main__":
    write(sys.argv[1])
    sys.stdout.write(json.dumps(describe(sys.argv[1])))
