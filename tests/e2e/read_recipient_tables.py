"""Runs in the clients' environment: writes tables with deltalake, and reads them by URLs with the library.

Arguments: ``write`` and a directory, or ``read``, the directory and the address of a schema.
"""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from sluice_recipient import open_table

from tests.e2e.deltalake_tables import FEATURE_TABLES
from tests.e2e.recipient_url_plan import NAMES
from tests.oracles.plain import spell_rows


def write(directory: str) -> None:
    for name in NAMES:
        FEATURE_TABLES[name](str(Path(directory) / name))


def read(directory: str, schema: str) -> dict[str, Any]:
    """Return what deltalake reads of each table where it lies, and what engines read of it by URLs."""
    found: dict[str, Any] = {}
    for name in NAMES:
        table = open_table(f"{schema}.{name}", mode="url")
        found[name] = {
            "deltalake": _spelled(DeltaTable(Path(directory) / name).to_pyarrow_table()),
            "arrow": _spelled(table.to_arrow().read_all()),
            "polars": _spelled(table.to_polars().collect().to_arrow()),
            "duckdb": _spelled(table.to_duckdb().to_arrow_table()),
        }
    return found


def _spelled(table: pa.Table) -> dict[str, Any]:
    columns = table.schema.names
    return {
        "columns": columns,
        "rows": spell_rows(columns, (list(row.values()) for row in table.to_pylist())),
    }


CALLS: Mapping[str, Callable[..., Any]] = {"write": write, "read": read}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(CALLS[sys.argv[1]](*sys.argv[2:])))
    sys.stdout.flush()
    # On a busy machine threads of the libraries may outlive the interpreter, which aborts the process then.
    os._exit(0)
