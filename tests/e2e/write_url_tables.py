"""Runs in the clients' environment: writes tables with deltalake, and prints what it reads of all of them."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.e2e.deltalake_tables import FEATURE_TABLES
from tests.oracles.plain import spell_rows

# Whether each has a feed that it can read itself.
WRITTEN = {"partition_strings": False, "feed_partitioned": True}


def main(directory: Path, others: Sequence[str]) -> dict[str, Any]:
    """Return what there is to read of these and of the other tables that are in the directory already."""
    for name in WRITTEN:
        FEATURE_TABLES[name](str(directory / name))
    return {name: _describe(directory / name) for name in (*WRITTEN, *others)}


def _describe(directory: Path) -> dict[str, Any]:
    latest = DeltaTable(directory).version()
    return {
        "versions": [_read(DeltaTable(directory, version=version)) for version in range(latest + 1)],
        "changes": _spelled(DeltaTable(directory).load_cdf(0, latest))
        if WRITTEN.get(directory.name)
        else None,
    }


def _read(table: DeltaTable) -> dict[str, Any]:
    mapped = "delta.columnMapping.mode" in table.metadata().configuration
    if not mapped and not table.protocol().reader_features:
        return _spelled(table.to_pyarrow_table())
    # By way of pyarrow it knows no reader feature; by way of DataFusion it does.
    return _spelled(QueryBuilder().register("shared", table).execute("SELECT * FROM shared").read_all())


def _spelled(rows: Any) -> dict[str, Any]:
    table = pa.table(rows)
    columns = table.schema.names
    return {
        "columns": columns,
        "rows": spell_rows(columns, (list(row.values()) for row in table.to_pylist())),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), sys.argv[2:])))
    sys.stdout.flush()
    # On a busy machine threads of the libraries may outlive the interpreter, which aborts the process then.
    os._exit(0)
