"""What deltalake writes, the snapshot service reads as deltalake itself does, version by version."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from gateway.domain.location import parse_location
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.store import SnapshotStore
from tests.builders import STARTED_AT
from tests.components import DELTALAKE
from tests.e2e.official_client import PYTHON, environment, require_environment
from tests.fakes.log_reader import FakeLogReader

pytestmark = pytest.mark.component(DELTALAKE)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, dict[int, Any]]:
    """Return a table of several versions, and what deltalake says that each holds."""
    require_environment()
    directory = tmp_path_factory.mktemp("deltalake") / "table"
    script = Path(__file__).with_name("write_with_deltalake.py")
    output = subprocess.run(
        [PYTHON, script, directory], check=True, capture_output=True, env=environment()
    ).stdout
    return directory, {int(version): state for version, state in json.loads(output).items()}


def log_of(directory: Path) -> TableLog:
    return TableLog(location=parse_location(str(directory)), reader=FakeLogReader())


def new_store() -> SnapshotStore:
    return SnapshotStore(memory=2**20, clock=lambda: STARTED_AT)


def files_of(snapshot):
    return sorted(
        [row["path"], row["size"], json.loads(row["stats"])["numRecords"]]
        for row in snapshot.files.to_dicts()
    )


async def test_every_version_has_the_same_files_and_schema(written):
    directory, states = written
    store, log = new_store(), log_of(directory)
    listing = await store.list_log(log)
    assert listing.latest == max(states)
    assert len(listing.checkpoints) == 2

    for version, state in states.items():
        snapshot = await store.at(log, listing, version)
        assert files_of(snapshot) == state["files"]
        assert not snapshot.files["hasDeletionVector"].any()
        assert snapshot.metadata.id == state["id"]
        assert json.loads(snapshot.metadata.schema_string) == state["schema"]


async def test_checkpoints_change_nothing(written, tmp_path):
    directory, states = written
    commits = tmp_path / "_delta_log"
    commits.mkdir()
    for file in (directory / "_delta_log").glob("*.json"):
        (commits / file.name).write_bytes(file.read_bytes())
    store, log = new_store(), log_of(tmp_path)
    listing = await store.list_log(log)
    assert not listing.checkpoints

    for version, state in states.items():
        assert files_of(await store.at(log, listing, version)) == state["files"]


async def test_refreshes_arrive_where_a_fresh_start_does(written, tmp_path):
    directory, states = written
    (tmp_path / "_delta_log").mkdir()
    store, log = new_store(), log_of(tmp_path)

    for version, state in states.items():
        name = f"{version:020d}.json"
        (tmp_path / "_delta_log" / name).write_bytes((directory / "_delta_log" / name).read_bytes())
        assert files_of(await store.latest(log)) == state["files"]


async def test_encoded_paths_are_those_of_files_on_disk(written):
    directory, _ = written

    snapshot = await new_store().latest(log_of(directory))

    assert all((directory / unquote(path)).is_file() for path in snapshot.files["encoded"])
