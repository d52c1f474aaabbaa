from __future__ import annotations

import polars as pl

from gateway.ports import LogFile
from gateway.services.snapshot.log.actions import FILES
from gateway.services.snapshot.state.snapshot import Metadata, Protocol, Snapshot
from tests.builders import STARTED_AT


def snapshot(files: int = 0, **metadata) -> Snapshot:
    row = {"path": "a" * 50, "encoded": "a" * 50, "size": 1, "stats": "s" * 100, "hasDeletionVector": False}
    return Snapshot(
        version=0,
        protocol=Protocol(min_reader_version=1),
        metadata=Metadata(**{"id": "t", "schema_string": "{}", **metadata}),
        files=pl.DataFrame([row] * files, schema=FILES),
        size=files,
        anchor=LogFile("anchor", 1, STARTED_AT),
    )


def test_even_an_empty_table_takes_memory():
    assert snapshot().memory >= 10_000


def test_memory_grows_with_files_schema_and_configuration():
    empty = snapshot().memory

    assert snapshot(files=1000).memory - empty >= 1000 * 200
    assert snapshot(schema_string="x" * 1000).memory - empty >= 990
    assert snapshot(configuration={"k" * 100: "v" * 900}).memory - empty >= 1000
