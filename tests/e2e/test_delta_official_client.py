"""The official client reads tables that Spark writes, in both formats, and its frame is Spark's.

CI reads every feature table and six random histories at their latest versions, and at those after which the
protocol, the metadata or a feature changes. The release lane reads all versions, and the other histories.
tests/integration/test_delta_histories.py proves without a client that every version of all histories has
Spark's files, deletion vectors, protocol and metadata. test_deltalake_official_client.py proves without Spark
that the client finds the rows of all tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from gateway.domain.window import EPOCH
from tests.components import ALL_IN_ONE, CLIENT, SPARK_WRITER
from tests.e2e.official_client import ClientError
from tests.e2e.shared_tables import Shared, sharing
from tests.oracles.fixtures import SparkTables
from tests.oracles.plan import COMMITS, FEATURES, HISTORIES, MORE_HISTORIES

pytestmark = [
    pytest.mark.component(ALL_IN_ONE),
    pytest.mark.component(CLIENT),
    pytest.mark.component(SPARK_WRITER),
    # Java and Maven come from apt.
    pytest.mark.system,
]

# What the client declares that it reads, and what says nothing about the files.
DECLARED = frozenset({"deletionVectors", "columnMapping", "timestampNtz"})
ABOUT_THE_LOG = frozenset({"v2Checkpoint", "vacuumProtocolCheck"})
# The client's own columns of a change feed: in its two formats it gives a time of another kind.
COMMIT_TIME = "_commit_timestamp"

# Together they have what a history's table can have from the start: column mapping by name, by id and none,
# with and without deletion vectors, partitions, V2 checkpoints, times in commits and row tracking.
READ_HISTORIES = ("history_001", "history_003", "history_005", "history_008", "history_010", "history_016")

histories = [
    *READ_HISTORIES,
    *(pytest.param(name, marks=pytest.mark.release) for name in HISTORIES if name not in READ_HISTORIES),
    *(pytest.param(name, marks=pytest.mark.deep) for name in MORE_HISTORIES),
]
every_table = pytest.mark.parametrize("name", [*FEATURES, *histories])
every_table_with_changes = pytest.mark.parametrize(
    "name", [*(name for name in FEATURES if name.startswith("feed")), *histories]
)
both_formats = pytest.mark.parametrize("use_delta_format", [True, False], ids=["delta", "parquet"])


@pytest.fixture(scope="module")
def shared(spark_tables, tmp_path_factory) -> Iterator[Shared]:
    tables = [*map(entry(spark_tables), spark_tables.names)]
    with sharing(tmp_path_factory.mktemp("deployment"), spark_tables.directory, tables) as shared:
        yield shared


def entry(tables: SparkTables) -> Callable[[str], dict[str, Any]]:
    def of(name: str) -> dict[str, Any]:
        found = {"name": name, "location": str(tables.path(name)), "historyShared": True}
        # A clone's files lie where the table is that it was cloned from.
        source = tables.path(name).with_name("source")
        return found | ({"auxiliaryLocations": [str(source)]} if source.exists() else {})

    return of


@every_table
@both_formats
def test_versions_that_differ_in_kind_have_the_rows_that_spark_reads(
    shared, spark_tables, name, use_delta_format
):
    states = last_of_each_kind(with_rows(spark_tables, name))
    check_rows(shared, name, states, use_delta_format=use_delta_format)


@pytest.mark.release
@every_table
@both_formats
def test_every_version_has_the_rows_that_spark_reads(shared, spark_tables, name, use_delta_format):
    check_rows(shared, name, with_rows(spark_tables, name), use_delta_format=use_delta_format)


def check_rows(shared: Shared, name: str, states: dict[int, Any], *, use_delta_format: bool) -> None:
    assert states
    for version, state in states.items():
        options = {"version": version, "use_delta_format": use_delta_format}
        if missing := not_in_format(state, use_delta_format=use_delta_format):
            with pytest.raises(ClientError, match="Unsupported Delta Table Properties") as refused:
                shared.ask("load", name, **options)
            assert all(feature in str(refused.value) for feature in missing)
        else:
            assert shared.ask("load", name, **options) == frame_of(state), version


@every_table
def test_the_latest_version_is_read_in_the_format_that_the_gateway_chooses(shared, spark_tables, name):
    latest = max(spark_tables.said(name)["versions"])
    state = spark_tables.said(name)["versions"][latest]
    if not_in_format(state, use_delta_format=True):
        with pytest.raises(ClientError, match="Unsupported Delta Table Properties"):
            shared.ask("load", name)
    else:
        assert shared.ask("load", name) == frame_of(state)


@every_table
def test_a_limit_gives_as_many_rows_of_the_table(shared, spark_tables, name):
    state = last(with_rows(spark_tables, name))
    if not_in_format(state, use_delta_format=True):
        pytest.skip("the client does not read such tables")
    for limit in (0, 1, 3) if name in HISTORIES else (3,):
        found = shared.ask("load", name, limit=limit)
        assert len(found["rows"]) == min(limit, len(state["rows"]))
        assert set(found["rows"]) <= set(state["rows"])


@every_table
def test_a_timestamp_means_the_version_that_it_means_to_spark(shared, spark_tables, name):
    timed = with_times(spark_tables, name)
    for version, state in timed.items():
        assert shared.ask("version_at", name, starting_timestamp=time_of(state)) == version
    first = min(timed)
    check_rows_by_time(shared, name, {first: timed[first]})


@pytest.mark.release
@every_table
def test_every_timestamp_gives_the_rows_that_it_gives_to_spark(shared, spark_tables, name):
    check_rows_by_time(shared, name, with_times(spark_tables, name))


def with_times(tables: SparkTables, name: str) -> dict[int, Any]:
    """Return the versions that can be read by their times."""
    states = with_rows(tables, name)
    # A version whose commit is gone has no time, to Spark neither.
    timed = {version: state for version, state in states.items() if "timestamp" in state}
    assert max(states) in timed
    return timed


def time_of(state: dict[str, Any]) -> str:
    return (EPOCH + timedelta(milliseconds=state["timestamp"])).isoformat(timespec="milliseconds")


def check_rows_by_time(shared: Shared, name: str, states: dict[int, Any]) -> None:
    for version, state in states.items():
        text = time_of(state)
        if not_in_format(state, use_delta_format=True):
            with pytest.raises(ClientError, match="Unsupported Delta Table Properties"):
                shared.ask("load", name, timestamp=text, use_delta_format=True)
        else:
            assert shared.ask("load", name, timestamp=text, use_delta_format=True) == frame_of(state), version


@every_table_with_changes
@both_formats
def test_changes_are_those_that_spark_reads(shared, spark_tables, name, use_delta_format):
    """Compare all changes at once, and those of each version by itself."""
    said = spark_tables.said(name)
    ranges = [
        part
        for recorded in said["changes"]
        for part in parts_of(recorded)
        if part is recorded or part["first"] == part["last"]
    ]
    check_changes(shared, said, name, ranges, use_delta_format=use_delta_format)


@pytest.mark.release
@every_table_with_changes
@both_formats
def test_changes_of_every_range_are_those_that_spark_reads(shared, spark_tables, name, use_delta_format):
    said = spark_tables.said(name)
    ranges = [part for recorded in said["changes"] for part in parts_of(recorded)]
    check_changes(shared, said, name, ranges, use_delta_format=use_delta_format)


def check_changes(
    shared: Shared, said: dict[str, Any], name: str, ranges: list[Any], *, use_delta_format: bool
) -> None:
    assert ranges
    for changes in ranges:
        states = [said["versions"][version] for version in range(changes["first"], changes["last"] + 1)]
        options = {
            "starting_version": changes["first"],
            "ending_version": changes["last"],
            "use_delta_format": use_delta_format,
        }
        if reason := why_refused(changes, states, use_delta_format=use_delta_format):
            with pytest.raises(ClientError, match=reason):
                shared.ask("load_changes", name, **options)
        else:
            found = shared.ask("load_changes", name, **options)
            assert without_time(found) == without_time(as_of_end(changes, states[-1])), options


def test_the_changes_of_most_histories_are_known_of_every_version(spark_tables):
    whole = {name: versions_with_changes(spark_tables.said(name)) for name in HISTORIES}
    assert sum(len(versions) > COMMITS for versions in whole.values()) >= len(HISTORIES) * 3 // 4


def versions_with_changes(said: dict[str, Any]) -> set[int]:
    read = [changes for changes in said["changes"] if "rows" in changes]
    return {version for changes in read for version in range(changes["first"], changes["last"] + 1)}


def parts_of(changes: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a range of changes, each version of it by itself, and all that ends where it does."""
    yield changes
    if "rows" not in changes:
        return
    first, last = changes["first"], changes["last"]
    for version in range(first, last + 1):
        for begins, ends in {(version, version), (version, last)} - {(first, last)}:
            rows = [row for row in changes["rows"] if begins <= json.loads(row)["_commit_version"] <= ends]
            yield changes | {"first": begins, "last": ends, "rows": rows}


def why_refused(changes: dict[str, Any], states: list[Any], *, use_delta_format: bool) -> str:
    """Return what may be said, as a pattern, of a range of changes that cannot be had; empty if it can."""
    reasons = []
    if any(not_in_format(state, use_delta_format=use_delta_format) for state in states):
        reasons.append("Unsupported Delta Table Properties")
    if "error" in changes:
        reasons.append("cdf is not enabled|cannot be read")
    schemas = {state["metaData"]["schemaString"] for state in states}
    if use_delta_format and len(schemas) > 1:
        # The kernel is told of every schema, and has rules of its own, which go further than Spark's.
        reasons.append("incompatible schema|schemas are different|changes of table .* cannot be read")
    return "|".join(reasons)


def with_rows(tables: SparkTables, name: str) -> dict[int, Any]:
    """Return the versions of which Spark has put down the rows, and that can still be read."""
    versions = tables.said(name)["versions"]
    found = {
        version: state
        for version, state in versions.items()
        if "rows" in state and state["readable"] and has_files(tables.path(name), state)
    }
    assert max(versions) in found
    return found


def last_of_each_kind(states: dict[int, Any]) -> dict[int, Any]:
    """Return the latest version, and those after which the protocol, the metadata or a feature changes."""
    versions = sorted(states)
    following = {before: kind_of(states[after]) for before, after in pairwise(versions)}
    return {at: states[at] for at in versions if kind_of(states[at]) != following.get(at)}


def kind_of(state: dict[str, Any]) -> tuple[Any, ...]:
    metadata = state["metaData"]
    has_vectors = any("deletionVector" in file for file in state["files"])
    return state["protocol"], metadata["schemaString"], metadata["configuration"], has_vectors


def last(states: dict[int, Any]) -> Any:
    return states[max(states)]


def has_files(table: Path, state: dict[str, Any]) -> bool:
    """Tell whether a version still has its files, which a vacuum takes away."""
    files = (place_of(table, file["path"]) for file in state["files"])
    return all(file.exists() for file in (*files, *(table / vector for vector in state["vectors"])))


def place_of(table: Path, path: str) -> Path:
    # A clone's paths are absolute, and a URL; all paths are percent-encoded.
    return table / unquote(urlsplit(path).path)


def not_in_format(state: dict[str, Any], *, use_delta_format: bool) -> frozenset[str]:
    """Return the features that a version uses and that the client does not read in a format."""
    used = used_features(state)
    return used - DECLARED if use_delta_format else used


def used_features(state: dict[str, Any]) -> frozenset[str]:
    protocol, metadata = state["protocol"], state["metaData"]
    configuration = metadata["configuration"]
    listed = set(protocol.get("readerFeatures", ())) - ABOUT_THE_LOG
    if protocol["minReaderVersion"] == 2:
        listed.add("columnMapping")
    in_use = {
        "columnMapping": configuration.get("delta.columnMapping.mode", "none") != "none",
        "deletionVectors": configuration.get("delta.enableDeletionVectors") == "true"
        or any("deletionVector" in file for file in state["files"]),
        "timestampNtz": "timestamp_ntz" in metadata["schemaString"],
        "typeWidening": "delta.typeChanges" in metadata["schemaString"],
    }
    return frozenset(feature for feature in listed if in_use.get(feature, True))


def frame_of(said: dict[str, Any]) -> dict[str, Any]:
    return {"columns": said["columns"], "rows": said["rows"]}


def as_of_end(changes: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """Return changes with the columns of the range's last version, where Spark takes those of the latest."""
    known = {field["name"] for field in json.loads(state["metaData"]["schemaString"])["fields"]}
    later = {name for name in changes["columns"] if name not in known and not name.startswith("_c")}
    rows = [json.loads(row) for row in changes["rows"]]
    assert all(row[name] is None for row in rows for name in later)
    return {
        "columns": [name for name in changes["columns"] if name not in later],
        "rows": [json.dumps({name: row[name] for name in row if name not in later}) for row in rows],
    }


def without_time(frame: dict[str, Any]) -> dict[str, Any]:
    rows = (json.loads(row) for row in frame["rows"])
    kept = ({key: value for key, value in row.items() if key != COMMIT_TIME} for row in rows)
    return {
        "columns": sorted(frame["columns"]),
        "rows": sorted(json.dumps(row, sort_keys=True) for row in kept),
    }
