from __future__ import annotations

import io
import json

import polars as pl
import pytest

from gateway.demo.sample_tables import ODD_VALUES, SAMPLE_TABLES
from gateway.domain.location import parse_location
from gateway.services.snapshot.features import require_parquet
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.store import SnapshotStore
from tests.builders import STARTED_AT
from tests.fakes.log_reader import FakeLogReader

_SMALL = [table for table in SAMPLE_TABLES if table.schema != "big"]


@pytest.fixture
def read(tmp_path):
    async def read(name: str, version: int | None = None):
        [table] = [table for table in SAMPLE_TABLES if table.name == name]
        table.build(tmp_path / name)
        log = TableLog(location=parse_location(str(tmp_path / name)), reader=FakeLogReader())
        store = SnapshotStore(memory=2**20, clock=lambda: STARTED_AT)
        if version is None:
            return await store.latest(log)
        return await store.at(log, await store.list_log(log), version)

    return read


@pytest.mark.parametrize("table", _SMALL, ids=lambda table: table.name)
async def test_every_table_can_be_shared_by_url(read, table):
    snapshot = await read(table.name)

    require_parquet(snapshot, table.name)
    assert not snapshot.files["encoded"].has_nulls()


@pytest.mark.parametrize("table", _SMALL, ids=lambda table: table.name)
async def test_files_hold_what_their_statistics_count(tmp_path, read, table):
    snapshot = await read(table.name)

    for row in snapshot.files.filter(pl.col("stats").is_not_null()).to_dicts():
        [file] = (tmp_path / table.name).rglob(row["path"].rpartition("/")[2])
        rows = pl.read_parquet(io.BytesIO(file.read_bytes())).height
        assert json.loads(row["stats"])["numRecords"] == rows
        assert file.stat().st_size == row["size"]


@pytest.mark.parametrize(("version", "rows"), [(0, 6), (1, 10), (2, 8), (3, 9), (4, 10)])
async def test_the_inventory_has_a_history(read, version, rows):
    snapshot = await read("inventory", version)

    stats = [json.loads(text)["numRecords"] for text in snapshot.files["stats"]]
    assert (snapshot.version, sum(stats)) == (version, rows)


async def test_partition_values_are_odd(read):
    snapshot = await read("partition_values")

    assert [values["value"] for values in snapshot.files["partitionValues"]] == list(ODD_VALUES)


async def test_one_table_is_empty(read):
    assert (await read("empty")).num_files == 0


async def test_one_table_has_no_statistics(read):
    assert (await read("without_stats")).files["stats"].null_count() == 2


async def test_one_table_lives_by_its_checkpoint(read):
    assert (await read("cleaned_up")).num_files == 7
