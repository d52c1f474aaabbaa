from __future__ import annotations

import io
import json

import polars as pl
import pytest

from gateway.demo.sample_tables import ODD_VALUES, SAMPLE_TABLES
from gateway.domain.location import parse_location
from gateway.services.snapshot.answer.features import has_vectors, used_features
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from tests.builders import STARTED_AT
from tests.cases import each_case
from tests.fakes.log_reader import FakeLogReader
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics

_SMALL = [table for table in SAMPLE_TABLES if table.schema != "big"]
# What a reader has to know to read these.
_USED = {"deletion_vectors": ("deletionVectors",), "column_mapping": ("columnMapping",)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every small sample table, built once: the tests only read them."""
    folder = tmp_path_factory.mktemp("samples")
    for table in _SMALL:
        table.build(folder / table.name)
    return folder


@pytest.fixture
def read(folder):
    async def read(name: str, version: int | None = None):
        log = TableLog(location=parse_location(str(folder / name)), reader=FakeLogReader())
        store = SnapshotStore(memory=2**20, clock=lambda: STARTED_AT, metrics=FakeSnapshotMetrics())
        if version is None:
            return await store.latest(log)
        return await store.at(log, await store.list_log(log), version)

    return read


def files_of(snapshot: Snapshot) -> pl.DataFrame:
    return snapshot.files.rows(0, snapshot.files.height)


@each_case("table", _SMALL, ids=lambda table: table.name)
async def test_every_table_can_be_shared_by_url(read, table):
    snapshot = await read(table.name)

    used = used_features(snapshot.protocol, snapshot.metadata, has_vectors=has_vectors(snapshot.files))
    assert used == _USED.get(table.name, ())
    assert not files_of(snapshot)["encoded"].has_nulls()


@each_case("table", _SMALL, ids=lambda table: table.name)
async def test_files_hold_what_their_statistics_count(folder, read, table):
    snapshot = await read(table.name)

    for row in files_of(snapshot).filter(pl.col("stats").is_not_null()).to_dicts():
        [file] = (folder / table.name).rglob(row["path"].rpartition("/")[2])
        rows = pl.read_parquet(io.BytesIO(file.read_bytes())).height
        assert json.loads(row["stats"])["numRecords"] == rows
        assert file.stat().st_size == row["size"]


async def test_the_inventory_has_a_history(read):
    snapshots = [await read("inventory", version) for version in range(5)]

    rows = {
        snapshot.version: sum(json.loads(text)["numRecords"] for text in files_of(snapshot)["stats"])
        for snapshot in snapshots
    }
    assert rows == {0: 6, 1: 10, 2: 8, 3: 9, 4: 10}


async def test_partition_values_are_odd(read):
    snapshot = await read("partition_values")

    assert [values["value"] for values in files_of(snapshot)["partitionValues"]] == list(ODD_VALUES)


async def test_one_table_is_empty(read):
    assert (await read("empty")).files.num_files == 0


async def test_one_table_has_no_statistics(read):
    assert files_of(await read("without_stats"))["stats"].null_count() == 2


async def test_one_table_lives_by_its_checkpoint(read):
    assert (await read("cleaned_up")).files.num_files == 7


async def test_deletion_vectors_take_rows_away(read):
    rows = {}
    for version in range(5):
        files = files_of(await read("deletion_vectors", version))
        deleted = files["deletionVector"].struct.field("cardinality").sum()
        rows[version] = sum(json.loads(text)["numRecords"] for text in files["stats"]) - deleted

    assert rows == {0: 800, 1: 780, 2: 777, 3: 977, 4: 975}


async def test_deletion_vectors_are_of_every_relative_kind(folder, read):
    vectors = files_of(await read("deletion_vectors"))["deletionVector"].struct
    kinds = vectors.field("storageType").to_list()

    assert sorted(kind or "" for kind in kinds) == ["", "i", "i", "u", "u"]
    assert len(list((folder / "deletion_vectors").rglob("deletion_vector_*.bin"))) == 2


async def test_mapped_columns_have_other_names_in_the_log(read):
    snapshot = await read("column_mapping")

    fields = {
        field["name"]: field["metadata"] for field in json.loads(snapshot.metadata.schema_string)["fields"]
    }
    physical = fields["region"]["delta.columnMapping.physicalName"]
    assert list(fields) == ["id", "amount in euros", "buyer", "region", "note"]
    assert snapshot.metadata.partition_columns == ("region",)
    assert {tuple(values) for values in files_of(snapshot)["partitionValues"]} == {(physical,)}


async def test_changes_are_told_by_their_own_files(folder, read):
    snapshot = await read("change_feed")

    log = folder / "change_feed" / "_delta_log"
    kinds = [
        {next(iter(json.loads(line))) for line in file.read_text().splitlines()} - {"commitInfo"}
        for file in sorted(log.glob("*.json"))
    ]
    assert snapshot.metadata.is_on("delta.enableChangeDataFeed")
    rewritten = {"add", "remove", "cdc"}
    assert kinds == [{"protocol", "metaData"}, {"add"}, rewritten, rewritten, {"add"}]


async def test_one_table_lives_by_the_sidecars_of_its_checkpoint(read):
    assert (await read("v2_checkpoint")).files.num_files == 7
