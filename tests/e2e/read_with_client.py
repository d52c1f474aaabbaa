"""Runs in the official client's environment: a call as JSON on each line in, its result on each line out."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import delta_sharing
import numpy as np
import pandas as pd
import pyarrow as pa
from delta_sharing.protocol import DeltaSharingProfile
from delta_sharing.rest_client import DataSharingRestClient
from deltalake import DeltaTable, QueryBuilder


def list_shares(profile: str) -> list[str]:
    return [share.name for share in delta_sharing.SharingClient(profile).list_shares()]


def list_schemas(profile: str, share: str) -> list[str]:
    client = delta_sharing.SharingClient(profile)
    return [schema.name for schema in client.list_schemas(delta_sharing.Share(share))]


def list_tables(profile: str, share: str, schema: str) -> list[str]:
    client = delta_sharing.SharingClient(profile)
    return [table.name for table in client.list_tables(delta_sharing.Schema(schema, share))]


def list_all_tables(profile: str) -> list[str]:
    tables = delta_sharing.SharingClient(profile).list_all_tables()
    return [f"{table.share}.{table.schema}.{table.name}" for table in tables]


def get_table_version(profile: str, table: str, starting_timestamp: str | None = None) -> int:
    return delta_sharing.get_table_version(f"{profile}#{table}", starting_timestamp)


def get_table_protocol(profile: str, table: str, **options: Any) -> dict[str, Any]:
    return vars(delta_sharing.get_table_protocol(f"{profile}#{table}", **options))


def get_table_metadata(profile: str, table: str, **options: Any) -> dict[str, Any]:
    metadata = delta_sharing.get_table_metadata(f"{profile}#{table}", **options)
    return {
        "id": metadata.id,
        "provider": metadata.format.provider,
        "schema": json.loads(metadata.schema_string),
        "partition_columns": list(metadata.partition_columns),
    }


def load_as_pandas(profile: str, table: str, **options: Any) -> dict[str, Any]:
    return _contents(delta_sharing.load_as_pandas(f"{profile}#{table}", **options))


def list_files(profile: str, table: str) -> list[tuple[str, int]]:
    """Return what the client was told to download: partition values and size of each file."""
    share, schema, name = table.split(".")
    client = DataSharingRestClient(DeltaSharingProfile.read_from_file(profile))
    answer = client.list_files_in_table(delta_sharing.Table(name, share, schema))
    return sorted((json.dumps(file.partition_values), file.size) for file in answer.add_files)


def read_directory(directory: str, version: int | None = None) -> dict[str, Any]:
    """Read a table where it lies, by an implementation of the format that is not ours."""
    return _contents(_rows_of(DeltaTable(directory, version=version)))


def read_partitions(directory: str, column: str, values: list[str]) -> dict[str, Any]:
    """Read some partitions of a plain table where it lies."""
    return _contents(DeltaTable(directory).to_pandas(partitions=[(column, "in", values)]))


def describe_directory(directory: str) -> dict[str, Any]:
    """Return what deltalake finds in the log of a table; no data file is read."""
    table = DeltaTable(directory)
    return {
        "id": table.metadata().id,
        "version": table.version(),
        "schema": json.loads(table.schema().to_json()),
        "partition_columns": table.metadata().partition_columns,
        "files": len(table.file_uris()),
    }


def _rows_of(table: DeltaTable) -> pd.DataFrame:
    mapped = "delta.columnMapping.mode" in table.metadata().configuration
    if not mapped and not table.protocol().reader_features:
        return table.to_pandas()
    # By way of pyarrow it knows no reader feature; by way of DataFusion it does.
    rows = QueryBuilder().register("shared", table).execute("SELECT * FROM shared").read_all()
    return pa.table(rows).to_pandas()


def _contents(frame: pd.DataFrame) -> dict[str, Any]:
    columns = list(frame.columns)
    rows = [[_plain(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    # A table has no order, and neither do its columns' places in files.
    return {
        "columns": sorted(columns),
        "rows": sorted(json.dumps(dict(zip(columns, row, strict=True)), sort_keys=True) for row in rows),
    }


def _plain(value: Any) -> Any:
    """Return one spelling of a value, for all the types that libraries read it into."""
    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, np.ndarray | Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Decimal():
            return str(value.normalize())
        case _:
            return value


CALLS = {
    call.__name__: call
    for call in (
        list_shares,
        list_schemas,
        list_tables,
        list_all_tables,
        get_table_version,
        get_table_protocol,
        get_table_metadata,
        load_as_pandas,
        list_files,
        read_directory,
        read_partitions,
        describe_directory,
    )
}


def main() -> None:
    answers = sys.stdout
    # The client prints what it likes; only answers belong on our output.
    with redirect_stdout(sys.stderr):
        for line in sys.stdin:
            answers.write(json.dumps(_answer(json.loads(line))) + "\n")
            answers.flush()


def _answer(call: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"result": CALLS[call["call"]](*call["arguments"], **call["options"])}
    except Exception as exc:  # noqa: BLE001 -- whatever the client raises is the test's to judge
        return {"error": f"{type(exc).__name__}: {exc}"}


if __name__ == "__main__":
    main()
