"""What deltalake writes, the snapshot service reads as deltalake itself does, version by version."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from gateway.domain.location import parse_location
from gateway.domain.log import DIRECTORY
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from tests.builders import STARTED_AT
from tests.components import DELTALAKE
from tests.e2e.official_client import PYTHON, environment, require_environment
from tests.fakes.log_reader import FakeLogReader
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics

pytestmark = pytest.mark.component(DELTALAKE)

# How many checkpoints and compactions deltalake leaves in the log of each table.
TABLES = {
    "partitioned": (2, 0),
    "feed": (1, 0),
    "evolving": (2, 0),
    "restored": (1, 0),
    "compacted": (0, 2),
}
every_table = pytest.mark.parametrize("name", TABLES)

Written = tuple[Path, dict[str, dict[int, Any]]]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Written:
    """Return tables of several versions, and what deltalake says that each holds."""
    require_environment()
    directory = tmp_path_factory.mktemp("deltalake")
    script = Path(__file__).with_name("write_with_deltalake.py")
    output = subprocess.run(
        [PYTHON, script, directory], check=True, capture_output=True, env=environment()
    ).stdout
    said = json.loads(output)
    return directory, {
        name: {int(version): state for version, state in states.items()} for name, states in said.items()
    }


@pytest.fixture
def directory(written: Written, name: str) -> Path:
    return written[0] / name


@pytest.fixture
def states(written: Written, name: str) -> dict[int, Any]:
    return written[1][name]


def log_of(directory: Path) -> TableLog:
    return TableLog(location=parse_location(str(directory)), reader=FakeLogReader())


def new_store() -> SnapshotStore:
    return SnapshotStore(memory=2**20, clock=lambda: STARTED_AT, metrics=FakeSnapshotMetrics())


def said_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot of ours as deltalake describes one."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    rows = snapshot.files.rows(0, snapshot.files.height).to_dicts()
    assert all(row["deletionVector"] is None or not row["deletionVector"]["storageType"] for row in rows)
    return {
        "files": sorted([row["path"], row["size"], json.loads(row["stats"])["numRecords"]] for row in rows),
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "configuration": metadata.configuration,
        "partition_columns": list(metadata.partition_columns),
        "created_time": metadata.created_time,
        "schema": json.loads(metadata.schema_string),
        "reader_version": protocol.min_reader_version,
        "writer_version": protocol.min_writer_version,
    }


@every_table
async def test_every_version_is_what_deltalake_says_of_it(directory, states, name):
    store, log = new_store(), log_of(directory)
    listing = await store.list_log(log)
    assert listing.latest == max(states)
    assert (len(listing.checkpoints), len(listing.compactions)) == TABLES[name]

    for version, state in states.items():
        assert said_of(await new_store().at(log, listing, version)) == state
        assert said_of(await store.at(log, listing, version)) == state


@every_table
async def test_checkpoints_and_compactions_change_nothing(directory, states, tmp_path):
    commits = tmp_path / DIRECTORY
    commits.mkdir()
    for version in states:
        shutil.copy(directory / DIRECTORY / f"{version:020}.json", commits)
    store, log = new_store(), log_of(tmp_path)
    listing = await store.list_log(log)
    assert not listing.checkpoints
    assert not listing.compactions

    for version, state in states.items():
        assert said_of(await store.at(log, listing, version)) == state


@every_table
async def test_refreshes_arrive_where_a_fresh_start_does(directory, states, tmp_path):
    (tmp_path / DIRECTORY).mkdir()
    store, log = new_store(), log_of(tmp_path)

    for version, state in states.items():
        shutil.copy(directory / DIRECTORY / f"{version:020}.json", tmp_path / DIRECTORY)
        assert said_of(await store.latest(log)) == state


@every_table
async def test_encoded_paths_are_those_of_files_on_disk(directory, states):
    files = (await new_store().latest(log_of(directory))).files

    paths = files.rows(0, files.height)["encoded"]
    assert all((directory / unquote(path)).is_file() for path in paths)
