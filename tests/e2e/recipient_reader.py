"""Runs in the clients' environment: reads shared tables with their engines, one JSON call on each line."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from typing import Any

import boto3
import deltalake
import duckdb
import polars as pl
import sluice_recipient

ENGINES = ("deltalake", "polars", "duckdb")


class Reader:
    """Keeps what it opened: a later call goes on with the same objects, as a long-lived program does."""

    def __init__(self) -> None:
        self._tables: dict[str, sluice_recipient.SharedTable] = {}
        self._scans: dict[tuple[str, str], Any] = {}
        self._batches: Iterator[Any] = iter(())
        self._s3: Any = None

    def open(self, address: str, **options: Any) -> str:
        self._tables[address] = sluice_recipient.open_table(address, **options)
        return repr(self._tables[address])

    def forget(self) -> None:
        """Drop all open tables and scans."""
        self._tables.clear()
        self._scans.clear()

    def ids(self, engine: str, address: str) -> list[int]:
        """Return the sorted ids in a table."""
        return _ids(engine, self._scan(engine, address))

    def ids_together(self, engine: str, addresses: list[str]) -> list[list[int]]:
        """Open all tables, and only then read them."""
        scans = [self._scan(engine, address) for address in addresses]
        return [_ids(engine, scan) for scan in scans]

    def ids_at(self, engine: str, address: str, storage_options: dict[str, str]) -> list[int]:
        """Read with options of one's own beside those of the table."""
        table = sluice_recipient.open_table(address)
        return _ids(engine, getattr(table, f"to_{engine}")(storage_options=storage_options))

    def ids_elsewhere(self, engine: str, address: str, location: str) -> list[int]:
        """Try to read another directory with the credential of a table."""
        options = self._tables[address].storage_options()
        if engine == "polars":
            return _ids(engine, pl.scan_delta(location, storage_options=options))
        delta = deltalake.DeltaTable(location, storage_options=options)
        return _ids(engine, duckdb.from_arrow(delta.to_pyarrow_dataset()) if engine == "duckdb" else delta)

    def count(self, engine: str, address: str) -> int:
        """Return how many rows a table has."""
        scan = self._scan(engine, address)
        return scan.select(pl.len()).collect().item() if engine == "polars" else len(scan)

    def rows(self, engine: str, address: str, mode: Any = "url", **options: Any) -> dict[str, Any]:
        """Return the columns and rows of a table that is read by URLs, or as is told."""
        table = sluice_recipient.open_table(address, mode=mode)
        rows = _rows(engine, getattr(table, f"to_{engine}")(**options))
        return {
            "columns": list(rows[0]) if rows else [],
            "rows": sorted(json.dumps(row, sort_keys=True) for row in rows),
        }

    def begin(self, address: str, engine: str = "deltalake") -> int:
        """Read the first rows of a table, and stay in the middle."""
        scan = self._scan(engine, address)
        if engine == "deltalake":
            # Without reading ahead: the files behind are opened when their rows are asked for.
            ahead = {"batch_readahead": 0, "fragment_readahead": 1, "use_threads": False}
            scan = scan.to_pyarrow_dataset().scanner(**ahead).to_batches()
        self._batches = iter(scan)
        return next(self._batches).num_rows

    def finish(self) -> int:
        """Return how many rows there were in the rest."""
        return sum(batch.num_rows for batch in self._batches)

    def finish_ids(self) -> list[int]:
        """Return the ids in the rest."""
        return [id_ for batch in self._batches for id_ in batch["id"].to_pylist()]

    def storage_options(self, address: str) -> dict[str, str]:
        return self._tables[address].storage_options()

    def is_delta_table(self, address: str) -> bool:
        """Ask in a call that holds Python's lock while it waits for a credential."""
        table = self._tables[address]
        return deltalake.DeltaTable.is_deltatable(table.location, table.storage_options(renewed=True))

    def get_object(self, bucket: str, key: str, endpoint: str | None = None) -> int:
        """Return an object's size, read by boto3 as this process' environment tells it to."""
        if self._s3 is None:
            self._s3 = boto3.session.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1")
        return len(self._s3.get_object(Bucket=bucket, Key=key)["Body"].read())

    def _scan(self, engine: str, address: str) -> Any:
        if address not in self._tables:
            self.open(address)
        if (engine, address) not in self._scans:
            self._scans[engine, address] = getattr(self._tables[address], f"to_{engine}")()
        return self._scans[engine, address]


def _ids(engine: str, scan: Any) -> list[int]:
    if engine == "deltalake":
        return sorted(scan.to_pyarrow_table(columns=["id"])["id"].to_pylist())
    if engine == "polars":
        return sorted(scan.select("id").collect()["id"].to_list())
    return sorted(number for (number,) in scan.project("id").fetchall())


def _rows(engine: str, scan: Any) -> list[dict[str, Any]]:
    if engine == "arrow":
        return scan.read_all().to_pylist()
    if engine == "polars":
        return scan.collect().to_dicts()
    return [dict(zip(scan.columns, row, strict=True)) for row in scan.fetchall()]


def main() -> None:
    reader, answers = Reader(), sys.stdout
    with redirect_stdout(sys.stderr):
        for line in sys.stdin:
            answers.write(json.dumps(_answer(reader, json.loads(line))) + "\n")
            answers.flush()


def _answer(reader: Reader, call: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"result": getattr(reader, call["call"])(*call["arguments"], **call["options"])}
    except Exception as exc:  # noqa: BLE001 -- whatever an engine raises is the test's to judge
        return {"error": f"{type(exc).__name__}: {exc}"}


if __name__ == "__main__":
    main()
