from __future__ import annotations

from tests.unit.services.snapshot.state.snapshots import snapshot_of


def test_even_an_empty_table_takes_memory():
    assert snapshot_of().memory >= 10_000


def test_memory_grows_with_files_schema_and_configuration():
    empty = snapshot_of().memory

    assert snapshot_of(1000).memory - empty >= 1000 * 200
    assert snapshot_of(schema_string="x" * 1000).memory - empty >= 990
    assert snapshot_of(configuration={"k" * 100: "v" * 900}).memory - empty >= 1000
