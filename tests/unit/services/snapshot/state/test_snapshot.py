from __future__ import annotations

from dataclasses import replace

import polars as pl

from gateway.services.snapshot.log.protocol import Protocol
from tests.unit.services.snapshot.state.snapshots import snapshot_of


def test_even_an_empty_table_takes_memory():
    assert snapshot_of().memory >= 10_000


def test_memory_grows_with_files_schema_and_configuration():
    empty = snapshot_of().memory

    assert snapshot_of(1000).memory - empty >= 1000 * 200
    assert snapshot_of(schema_string="x" * 1000).memory - empty >= 990
    assert snapshot_of(configuration={"k" * 100: "v" * 900}).memory - empty >= 1000


def test_an_order_of_the_files_is_what_no_other_version_shares():
    snapshot = snapshot_of(10)
    before, bare = snapshot.memory, snapshot.bare_memory
    snapshot.files.columns.get_order(lambda: pl.Series(range(10), dtype=pl.UInt32))

    assert (snapshot.memory - before, snapshot.bare_memory - bare) == (40, 40)


def test_memory_grows_with_the_features_of_the_protocol():
    snapshot = snapshot_of()
    protocol = Protocol(min_reader_version=3, reader_features=("f" * 10,) * 1000, writer_features=("g",))

    assert replace(snapshot, protocol=protocol).bare_memory - snapshot.bare_memory >= 10_000
