"""What Spark writes, the snapshot service reads as Spark itself does, version by version.

States are compared, not rows: the files, deletion vectors, protocol and metadata of a version say which
rows it has. Rows are compared in tests/e2e/test_deltalake_official_client.py, and for Spark's features in
tests/e2e/test_delta_official_client.py.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.location import parse_location
from gateway.domain.window import EPOCH
from gateway.errors import GatewayError
from gateway.services.snapshot.log.history import read_history
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from tests.builders import STARTED_AT
from tests.components import SPARK_WRITER
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from tests.oracles.plan import COMMITS, HISTORIES, MORE_HISTORIES, TABLES
from vendors.local.reader import LocalReader

pytestmark = [
    pytest.mark.component(SPARK_WRITER),
    # Java and Maven come from apt.
    pytest.mark.system,
]

every_table = pytest.mark.parametrize(
    "name", [*TABLES, *(pytest.param(name, marks=pytest.mark.deep) for name in MORE_HISTORIES)]
)

MILLISECOND = timedelta(milliseconds=1)
# A checkpoint says of every file that it changes no data, and so does Spark of every file it has read.
NOT_COMPARED = frozenset({"dataChange", "encoded"})

# As Spark calls what the histories are made of.
OPERATIONS = frozenset(
    {
        "CREATE TABLE",
        "WRITE",
        "DELETE",
        "UPDATE",
        "MERGE",
        "OPTIMIZE",
        "VACUUM START",
        "RESTORE",
        "ADD COLUMNS",
        "RENAME COLUMN",
        "DROP COLUMNS",
        "SET TBLPROPERTIES",
    }
)


@pytest.fixture
def log(spark_tables, name) -> TableLog:
    reader = LocalReader(parse_location(str(spark_tables.directory)))
    return TableLog(location=parse_location(str(spark_tables.path(name))), reader=reader)


def new_store() -> SnapshotStore:
    return SnapshotStore(memory=2**26, clock=lambda: STARTED_AT, metrics=FakeSnapshotMetrics())


def readable(said: dict[str, Any]) -> dict[int, Any]:
    """Return the versions that the log still has when all is written, as Spark finds."""
    return {version: state for version, state in said["versions"].items() if state["readable"]}


@every_table
async def test_every_version_has_the_files_protocol_and_metadata_that_spark_finds(spark_tables, log, name):
    expected = readable(spark_tables.said(name))
    listing = await new_store().list_log(log)
    assert listing.latest == max(expected)

    for version, state in expected.items():
        # From its checkpoint on, and not by way of another version.
        snapshot = await new_store().at(log, listing, version)
        assert said_of(snapshot) == normal(state), version


@every_table
async def test_one_version_after_the_other_arrives_where_a_fresh_start_does(spark_tables, log, name):
    expected = readable(spark_tables.said(name))
    store = new_store()
    listing = await store.list_log(log)

    for version, state in expected.items():
        snapshot = await store.at(log, listing, version)
        assert said_of(snapshot) == normal(state), version


@every_table
async def test_every_version_has_the_time_that_spark_gives_it(spark_tables, log, name):
    versions = spark_tables.said(name)["versions"]
    times = {version: state["timestamp"] for version, state in versions.items() if "timestamp" in state}
    store = new_store()
    history = await read_history(log, await store.list_log(log), (await store.latest(log)).metadata)
    assert history is not None

    await history.load(times)
    assert {version: history.timestamp_of(version) for version in times} == times
    for version, time in times.items():
        at = EPOCH + time * MILLISECOND
        assert await history.version_as_of(at) == version
        assert await history.version_from(at) == version
        if version - 1 in times:
            assert await history.version_as_of(at - MILLISECOND) == version - 1
            assert (
                await history.version_from(times[version - 1] * MILLISECOND + EPOCH + MILLISECOND) == version
            )


# The only table whose log has lost versions.
@pytest.mark.parametrize("name", ["log_cleaned"])
async def test_a_version_that_spark_cannot_find_any_more_is_refused(spark_tables, log, name):
    said = spark_tables.said(name)
    gone = said["versions"].keys() - readable(said).keys()
    assert gone
    store = new_store()
    listing = await store.list_log(log)

    for version in gone:
        with pytest.raises(GatewayError, match=r"log lacks"):
            await store.at(log, listing, version)


def test_every_history_has_its_number_of_commits(spark_tables):
    lengths = [max(spark_tables.said(name)["versions"]) for name in HISTORIES]
    assert min(lengths) >= COMMITS


def test_the_histories_hold_every_operation_and_many_checkpoints(spark_tables):
    versions = [state for name in HISTORIES for state in spark_tables.said(name)["versions"].values()]
    assert {state["operation"] for state in versions if "operation" in state} >= OPERATIONS
    checkpoints = [
        file for name in HISTORIES for file in spark_tables.path(name).glob("_delta_log/*.checkpoint*")
    ]
    assert len(checkpoints) > len(HISTORIES)


def said_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot of ours in the words of the log, comparable to what Spark says."""
    protocol, metadata = snapshot.protocol, snapshot.metadata
    files = snapshot.files.rows(0, snapshot.files.height).to_dicts()
    assert snapshot.files.num_files == len(files)
    assert snapshot.files.size == sum(file["size"] for file in files)
    return normal(
        {
            "files": files,
            "protocol": {
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "readerFeatures": protocol.reader_features,
                "writerFeatures": protocol.writer_features,
            },
            "metaData": {
                "id": metadata.id,
                "name": metadata.name,
                "description": metadata.description,
                "format": {"provider": metadata.provider, "options": dict(metadata.format_options)},
                "schemaString": metadata.schema_string,
                "partitionColumns": list(metadata.partition_columns),
                "configuration": dict(metadata.configuration),
                "createdTime": metadata.created_time,
            },
        }
    )


def normal(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state in one spelling: files by what identifies them, sets in order, no null members."""
    features = ("readerFeatures", "writerFeatures")
    protocol = _present(state["protocol"])
    files = [_normal_file(file) for file in state["files"]]
    by_key = {(file["path"], json.dumps(file.get("deletionVector"))): file for file in files}
    assert len(by_key) == len(files)
    return {
        "files": by_key,
        "protocol": {key: sorted(v) if key in features else v for key, v in protocol.items()},
        "metaData": _present(state["metaData"]),
    }


def _normal_file(file: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in _present(file).items() if key not in NOT_COMPARED}
    vector = _present(found.pop("deletionVector", None) or {})
    if "stats" in found:
        found["stats"] = _without_nan(json.loads(found["stats"]))
    return found | ({"deletionVector": vector} if vector else {})


def _without_nan(stats: Any) -> Any:
    """Return statistics without bounds that are no number, which bound nothing and may be left out."""
    if not isinstance(stats, dict):
        return stats
    return {key: _without_nan(value) for key, value in stats.items() if value != "NaN"}


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
