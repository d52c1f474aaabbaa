"""Runs in the official client's environment: writes tables with deltalake, and prints what they hold."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

_VALUES = ["plain", "two words", "a/b", "100%", "a=b", "#?&+", "Grüße", "東京", 'say "hi"', None]
_FEED = {"delta.enableChangeDataFeed": "true"}


def write_partitioned(directory: str) -> None:
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


def write_feed(directory: str) -> None:
    write_deltalake(directory, _rows(0), configuration=_FEED)
    table = DeltaTable(directory)
    table.update({"n": "n + 100"}, predicate="n > 7")
    table.delete("n = 2")
    source = _rows(4)
    (
        table.merge(source, "t.n = s.n", source_alias="s", target_alias="t")
        .when_matched_delete("s.p = 'plain'")
        .when_matched_update({"p": "s.p"})
        .when_not_matched_insert({"n": "s.n", "p": "s.p"})
        .execute()
    )
    table.create_checkpoint()
    table.optimize.compact()


def write_evolving(directory: str) -> None:
    write_deltalake(directory, _rows(0), partition_by=["p"], name="evolving", description="it grows")
    wider = _rows(20).append_column("extra", pa.array([1.5] * len(_VALUES)))
    write_deltalake(directory, wider, mode="append", schema_mode="merge")
    table = DeltaTable(directory)
    table.alter.set_table_properties({"delta.checkpointInterval": "3"})
    table.alter.add_constraint({"positive": "n >= 0"})
    table.alter.set_table_description("it has grown")
    write_deltalake(directory, wider, mode="append")
    write_deltalake(directory, wider, mode="append")
    narrow = pa.table({"n": pa.array([1, 2])})
    write_deltalake(directory, narrow, mode="overwrite", schema_mode="overwrite", partition_by=[])


def write_restored(directory: str) -> None:
    for number in range(3):
        write_deltalake(directory, _rows(number), mode="append")
    table = DeltaTable(directory)
    table.delete("n < 3")
    table.restore(2)
    table.optimize.z_order(["n"])
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    table.create_checkpoint()
    write_deltalake(directory, _rows(7), mode="append")


def write_compacted(directory: str) -> None:
    """Write commits, and files that each hold what several of them come to."""
    for number in range(5):
        write_deltalake(directory, _rows(number), mode="append")
    table = DeltaTable(directory)
    table.delete("n < 3")
    table.compact_logs(1, 4)
    table.optimize.compact()
    write_deltalake(directory, _rows(9), mode="append")
    DeltaTable(directory).compact_logs(5, 7)


TABLES: dict[str, Callable[[str], None]] = {
    "partitioned": write_partitioned,
    "feed": write_feed,
    "evolving": write_evolving,
    "restored": write_restored,
    "compacted": write_compacted,
}


def describe(directory: str) -> dict[int, Any]:
    """Return the live files and the metadata of each version."""
    latest = DeltaTable(directory).version()
    return {version: _state(DeltaTable(directory, version=version)) for version in range(latest + 1)}


def _rows(number: int) -> pa.Table:
    return pa.table(
        {"n": pa.array([number + index for index in range(len(_VALUES))]), "p": pa.array(_VALUES)}
    )


def _state(table: DeltaTable) -> dict[str, Any]:
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    metadata, protocol = table.metadata(), table.protocol()
    return {
        "files": sorted([action["path"], action["size_bytes"], action["num_records"]] for action in actions),
        "id": str(metadata.id),
        "name": metadata.name,
        "description": metadata.description,
        "configuration": metadata.configuration,
        "partition_columns": metadata.partition_columns,
        "created_time": metadata.created_time,
        "schema": json.loads(table.schema().to_json()),
        "reader_version": protocol.min_reader_version,
        "writer_version": protocol.min_writer_version,
    }


def main(directory: Path) -> dict[str, Any]:
    said = {}
    for name, write in TABLES.items():
        write(str(directory / name))
        said[name] = describe(str(directory / name))
    return said


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
