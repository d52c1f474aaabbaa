"""Runs in the clients' environment: writes tables, and has DuckDB find the files that predicates match."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

_FILE = "number of the file"


def write(directory: str, table: Mapping[str, Any], *, checkpoint: bool) -> None:
    """Write a table, one commit for each of its files; the writer makes their statistics."""
    partitions = [column["path"][0] for column in table["columns"] if column["partition"]]
    append = _WRITERS[table["writer"]]
    with _loaded(table) as connection:
        # Of times the writers take those of this zone alone.
        connection.execute("SET TimeZone = 'UTC'")
        for number in sorted({row[0] for row in table["rows"]}):
            query = f"SELECT * EXCLUDE ({_name(_FILE)}) FROM data WHERE {_name(_FILE)} = {number}"
            append(directory, connection.sql(query).to_arrow_table(), partitions)
    if checkpoint:
        DeltaTable(directory).create_checkpoint()


def find_matches(table: Mapping[str, Any], predicates: Sequence[str]) -> list[list[int]]:
    """Return for each predicate the files that hold a row of which it is true."""
    with _loaded(table) as connection:
        for column in table["columns"]:
            _take_empty_for_null(connection, column)
        connection.execute(f"SET TimeZone = '{table['zone']}'")
        tests = ", ".join(f"bool_or({predicate})" for predicate in predicates)
        found = connection.sql(f"SELECT {_name(_FILE)}, {tests} FROM data GROUP BY ALL").fetchall()
    return [sorted(row[0] for row in found if row[index + 1]) for index in range(len(predicates))]


CALLS = {call.__name__: call for call in (write, find_matches)}


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(json.loads(line))) + "\n")
        sys.stdout.flush()


def _answer(call: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"result": CALLS[call["call"]](*call["arguments"], **call["options"])}
    except BaseException as exc:  # noqa: BLE001 -- a panic of a library is no Exception
        return {"error": f"{type(exc).__name__}: {exc}"}


def _loaded(table: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Return a database with the table in it: DuckDB reads each value from its text."""
    columns, rows = table["columns"], table["rows"]
    texts = {
        str(index): pa.array([row[index + 1] for row in rows], pa.string()) for index in range(len(columns))
    }
    numbers = pa.array([row[0] for row in rows], pa.int32())
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("texts", pa.table({_FILE: numbers, **texts}))
    leaves = [
        (tuple(column["path"]), f'CAST("{index}" AS {column["type"]})')
        for index, column in enumerate(columns)
    ]
    values = ", ".join(f"{value} AS {_name(name)}" for name, value in _members(leaves).items())
    connection.execute(f"CREATE TABLE data AS SELECT {_name(_FILE)}, {values} FROM texts")
    return connection


def _members(leaves: Sequence[tuple[tuple[str, ...], str]]) -> dict[str, str]:
    """Return an expression for each name: a struct for what has names below it, null where all are."""
    groups: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for path, value in leaves:
        groups.setdefault(path[0], []).append((path[1:], value))
    found = {}
    for name, group in groups.items():
        is_leaf = group[0][0] == ()
        found[name] = group[0][1] if is_leaf else _struct(_members(group), [value for _, value in group])
    return found


def _struct(members: Mapping[str, str], leaves: Sequence[str]) -> str:
    fields = ", ".join(f"{_name(name)} := {value}" for name, value in members.items())
    present = " OR ".join(f"{leaf} IS NOT NULL" for leaf in leaves)
    return f"CASE WHEN {present} THEN struct_pack({fields}) END"


def _take_empty_for_null(connection: duckdb.DuckDBPyConnection, column: Mapping[str, Any]) -> None:
    """Add the rows that those see who take an empty text of a partition for null, as the protocol does."""
    if column["partition"] and column["type"] == "VARCHAR":
        name = _name(column["path"][0])
        connection.execute(f"INSERT INTO data SELECT * REPLACE (NULL AS {name}) FROM data WHERE {name} = ''")


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _append_with_deltalake(directory: str, rows: pa.Table, partitions: Sequence[str]) -> None:
    write_deltalake(
        directory, rows, mode="append", partition_by=list(partitions), configuration=_CONFIGURATION
    )


def _append_with_polars(directory: str, rows: pa.Table, partitions: Sequence[str]) -> None:
    options = {"partition_by": list(partitions), "configuration": _CONFIGURATION}
    frame = pl.DataFrame(pl.from_arrow(rows))
    frame.write_delta(directory, mode="append", delta_write_options=options)


# A checkpoint then has the statistics as values, beside their text.
_CONFIGURATION = {"delta.checkpoint.writeStatsAsStruct": "true"}
_WRITERS: Mapping[str, Callable[[str, pa.Table, Sequence[str]], None]] = {
    "deltalake": _append_with_deltalake,
    "polars": _append_with_polars,
}

if __name__ == "__main__":
    main()
