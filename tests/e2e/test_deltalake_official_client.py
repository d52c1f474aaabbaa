"""The official client reads every table that deltalake writes, in both formats, and finds the same rows.

This is where rows of all tables are compared: the cheapest place with a reader that is not ours, as it needs
no Spark. Other tests compare states instead of rows, or the rows of a few tables. CI reads the versions at
which something changes in kind, and a third of the random histories. The release lane reads all of them.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.window import EPOCH
from tests.components import ALL_IN_ONE, CLIENT, DELTALAKE
from tests.e2e.deltalake_plan import (
    BY_VERSION,
    CHANGES,
    CHOSEN_FORMAT,
    COMMITS,
    FEATURES,
    HISTORIES,
    MORE_BY_VERSION,
    TABLES,
)
from tests.e2e.official_client import PYTHON, ClientError, environment, require_environment
from tests.e2e.shared_tables import Shared, sharing
from tests.repository import ROOT

pytestmark = [
    pytest.mark.component(ALL_IN_ONE),
    pytest.mark.component(CLIENT),
    pytest.mark.component(DELTALAKE),
]

COMMIT_TIME, COMMIT_VERSION, CHANGE_TYPE = "_commit_timestamp", "_commit_version", "_change_type"
ABOUT_THE_CHANGE = frozenset({COMMIT_TIME, COMMIT_VERSION, CHANGE_TYPE})
NOT_EXPRESSIBLE = "Unsupported Delta Table Properties"
UNLIKE = "changes of table .* cannot be read"
# What the client says when a file is not there, with the kernel and without.
LOST = {True: "Corrupt footer", False: "FileNotFoundError"}

# Of a random history, CI reads every fourth version.
HISTORY_STEP = 4

every_table = pytest.mark.parametrize("name", TABLES)
every_feed = pytest.mark.parametrize("name", CHANGES)
both_formats = pytest.mark.parametrize("use_delta_format", [True, False], ids=["delta", "parquet"])


@dataclass(frozen=True, slots=True)
class Written:
    """Tables in a directory, and what deltalake reads of each."""

    directory: Path
    said: dict[str, Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Written:
    require_environment()
    directory = tmp_path_factory.mktemp("deltalake")
    output = subprocess.run(
        [PYTHON, "-m", "tests.e2e.write_deltalake_tables", directory],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env=environment(),
    ).stdout
    said = json.loads(output)
    assert list(said) == list(TABLES)
    return Written(directory, said)


@pytest.fixture
def said(written, name) -> Any:
    return written.said[name]


@pytest.fixture(scope="module")
def shared(written, tmp_path_factory) -> Iterator[Shared]:
    tables = [
        {"name": name, "location": str(written.directory / name), "historyShared": True} for name in TABLES
    ]
    with sharing(tmp_path_factory.mktemp("deployment"), written.directory, tables) as shared:
        yield shared


def changes_of(shared: Shared, name: str, first: int, last: int, *, use_delta_format: bool) -> Any:
    return shared.ask(
        "load_changes", name, starting_version=first, ending_version=last, use_delta_format=use_delta_format
    )


@every_table
@both_formats
def test_versions_that_change_in_kind_have_the_rows_that_deltalake_reads(
    shared, written, said, name, use_delta_format
):
    versions = versions_for_ci(written, name)
    check_versions(shared, said, name, versions, use_delta_format=use_delta_format)


@pytest.mark.release
@every_table
@both_formats
def test_every_version_has_the_rows_that_deltalake_reads(shared, said, name, use_delta_format):
    check_versions(shared, said, name, list(said["versions"]), use_delta_format=use_delta_format)


def check_versions(
    shared: Shared, said: dict[str, Any], name: str, versions: list[str], *, use_delta_format: bool
) -> None:
    outcomes: Counter[str] = Counter()
    for version in versions:
        state = said["versions"][version]
        options = {"version": int(version), "use_delta_format": use_delta_format}
        if reason := why_not_read(state, use_delta_format=use_delta_format):
            with pytest.raises(ClientError, match=reason):
                shared.ask("load", name, **options)
            outcomes["refused"] += 1
        else:
            assert shared.ask("load", name, **options) == frame_of(state), version
            outcomes["equal"] += 1

    at_least = TABLES[name].at_least(use_delta_format=use_delta_format)
    check_counts(outcomes, len(versions), len(said["versions"]), at_least)


@pytest.mark.parametrize(
    "name",
    [name if name in CHOSEN_FORMAT else pytest.param(name, marks=pytest.mark.release) for name in TABLES],
)
def test_the_latest_version_is_read_in_the_format_that_the_gateway_chooses(shared, said, name):
    assert shared.ask("load", name) == frame_of(said["versions"][str(latest(said))])


@every_feed
@both_formats
def test_changes_that_differ_in_kind_are_those_that_deltalake_reads(shared, said, name, use_delta_format):
    check_changes(shared, said, name, ranges_for_ci(said, name), use_delta_format=use_delta_format)


@pytest.mark.release
@every_feed
@both_formats
def test_changes_of_every_range_are_those_that_deltalake_reads(shared, said, name, use_delta_format):
    check_changes(shared, said, name, said["changes"], use_delta_format=use_delta_format)


def check_changes(
    shared: Shared, said: dict[str, Any], name: str, ranges: list[dict[str, Any]], *, use_delta_format: bool
) -> None:
    outcomes: Counter[str] = Counter()
    for changes in ranges:
        first, last = changes["first"], changes["last"]
        if reason := why_no_changes(said, changes, use_delta_format=use_delta_format):
            with pytest.raises(ClientError, match=reason):
                changes_of(shared, name, first, last, use_delta_format=use_delta_format)
            outcomes["refused"] += 1
        else:
            found = changes_of(shared, name, first, last, use_delta_format=use_delta_format)
            assert without_time(found) == without_time(changes), (first, last)
            times = times_of(found)
            assert times == told_times(said, times, use_delta_format=use_delta_format), (first, last)
            outcomes["equal"] += 1

    at_least = CHANGES[name].at_least(use_delta_format=use_delta_format)
    check_counts(outcomes, len(ranges), len(said["changes"]), at_least)


def check_counts(outcomes: Counter[str], tried: int, available: int, at_least: int) -> None:
    """Check that at most as many were refused as all available versions or ranges allow."""
    assert outcomes.total() == tried > 0
    assert outcomes["equal"] >= tried - (available - at_least)
    assert outcomes["equal"] > 0 or at_least == 0


def versions_for_ci(written: Written, name: str) -> list[str]:
    """Return the first version of each kind, the first checkpoint's and the one after it, and the latest."""
    said = written.said[name]
    if name in HISTORIES:
        return [version for version in said["versions"] if int(version) % HISTORY_STEP == 0]
    first_of_kind: dict[str, str] = {}
    for version, state in said["versions"].items():
        rows = {"columns", "rows", "error"}
        kind = {key: value for key, value in state.items() if key not in rows} | {"error": "error" in state}
        operation = said["operations"].get(version, {}).get("name")
        first_of_kind.setdefault(json.dumps([operation, kind]), version)
    logs = written.directory / name / "_delta_log"
    checkpoints = sorted(int(file.name.partition(".")[0]) for file in logs.glob("*.checkpoint.parquet"))
    chosen = {*map(int, first_of_kind.values()), latest(said)}
    for checkpoint in checkpoints[:1]:
        chosen |= {checkpoint, checkpoint + 1}
    return [str(version) for version in sorted(chosen) if version <= latest(said)]


def ranges_for_ci(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the first range of each kind, which include ranges from the start and from the middle."""
    if name in HISTORIES:
        return [
            changes
            for changes in said["changes"]
            if changes["first"] % HISTORY_STEP == 0 and (changes["first"] in {0, changes["last"]})
        ]
    first_of_kind: dict[tuple[str, ...], dict[str, Any]] = {}
    for changes in said["changes"]:
        first, last = changes["first"], changes["last"]
        reasons = [why_no_changes(said, changes, use_delta_format=each) for each in (True, False)]
        extent = said["operations"][str(first)]["name"] if first == last else "range"
        place = "latter half" if first != last and first >= latest(said) // 2 else ""
        first_of_kind.setdefault((extent, place, *reasons), changes)
    return [*first_of_kind.values()]


@pytest.mark.parametrize(("name", "use_delta_format"), BY_VERSION)
def test_changes_that_deltalake_cannot_read_lead_from_version_to_version(
    shared, said, name, use_delta_format
):
    check_changes_by_version(shared, said, name, {latest(said) // 2}, use_delta_format=use_delta_format)


@pytest.mark.release
@pytest.mark.parametrize(("name", "use_delta_format"), MORE_BY_VERSION)
def test_changes_of_every_range_lead_from_version_to_version(shared, said, name, use_delta_format):
    starts = set(range(latest(said) + 1))
    check_changes_by_version(shared, said, name, starts, use_delta_format=use_delta_format)


def check_changes_by_version(
    shared: Shared, said: dict[str, Any], name: str, starts: set[int], *, use_delta_format: bool
) -> None:
    """Compare the changes of each version with its states, and the changes of ranges with the sum."""
    assert all("error" in changes for changes in said["changes"])
    states = [Counter(state["rows"]) for state in said["versions"].values()]
    later: Counter[str] = Counter()
    for version, state in reversed([*enumerate(states)]):
        changes = changes_of(shared, name, version, version, use_delta_format=use_delta_format)
        gone, come = by_effect(changes)
        before = states[version - 1] if version else Counter[str]()
        assert gone <= before
        assert before - gone + come == state

        later += Counter(without_time(changes)["rows"])
        if version in starts:
            range_ = changes_of(shared, name, version, len(states) - 1, use_delta_format=use_delta_format)
            assert Counter(without_time(range_)["rows"]) == later


@pytest.mark.parametrize("name", [name for name, _ in BY_VERSION if not TABLES[name].parquet])
def test_changes_of_mapped_columns_are_refused_in_the_parquet_format(shared, said, name):
    with pytest.raises(ClientError, match=NOT_EXPRESSIBLE):
        changes_of(shared, name, 0, latest(said), use_delta_format=False)


def test_every_kind_of_operation_was_written_and_is_in_the_histories(written):
    every, random = operations_of(written, FEATURES), operations_of(written, HISTORIES)
    writes = {f"WRITE {mode}" for mode in ("Append", "Overwrite", "Overwrite WHERE")}
    changes = writes | {"DELETE", "UPDATE", "MERGE", "OPTIMIZE", "VACUUM END", "RESTORE", "ADD COLUMN"}
    assert {*changes, "CREATE TABLE", "CONVERT", "ADD FEATURE", "SET TBLPROPERTIES"} <= every.keys()
    assert {*changes, "SET TBLPROPERTIES"} <= random.keys()
    # Compactions of one partition and of all, and an order by columns: the log calls them the same.
    assert operations_of(written, ["optimized"])["OPTIMIZE"] == 3


def test_histories_are_long_and_have_checkpoints(written):
    assert all(len(written.said[name]["operations"]) >= COMMITS for name in HISTORIES)
    assert all([*(written.directory / name).glob("_delta_log/*.checkpoint.parquet")] for name in HISTORIES)


def test_logs_are_compacted_and_cleaned_up(written):
    assert [*(written.directory / "compacted_log").glob("_delta_log/*.compacted.json")]
    assert not (written.directory / "cleaned_log" / "_delta_log" / f"{0:020}.json").exists()


def why_not_read(state: dict[str, Any], *, use_delta_format: bool) -> str:
    """Return what must be said, as a pattern, of a version that cannot be had; empty if it can."""
    if "fields" not in state:
        # Its commits were cleaned up.
        return r"version \d+ cannot be read"
    if not use_delta_format and needs_delta(state):
        return NOT_EXPRESSIBLE
    return LOST[use_delta_format] if "error" in state else ""


def why_no_changes(said: dict[str, Any], changes: dict[str, Any], *, use_delta_format: bool) -> str:
    """Return what must be said, as a pattern, of a range of changes that cannot be had; empty if it can."""
    states = [said["versions"][str(number)] for number in range(changes["first"], changes["last"] + 1)]
    if not all(state["feed"] for state in states):
        # deltalake notices only where the commit that turns it off is in the range.
        return "cdf is not enabled"
    if not use_delta_format and any(map(needs_delta, states)):
        return NOT_EXPRESSIBLE
    if reason := why_unlike(states, use_delta_format=use_delta_format):
        return reason
    return LOST[use_delta_format] if "error" in changes else ""


def why_unlike(states: list[dict[str, Any]], *, use_delta_format: bool) -> str:
    names = [{field["name"] for field in state["fields"]} for state in states]
    if use_delta_format:
        # The kernel takes no change of the schema at all.
        return f"{UNLIKE}|schemas are different" if any(found != names[-1] for found in names) else ""
    return UNLIKE if any(found - names[-1] for found in names) else ""


def needs_delta(state: dict[str, Any]) -> bool:
    """Tell whether a version uses what the parquet format cannot express."""
    configuration = state["configuration"]
    return (
        configuration.get("delta.columnMapping.mode", "none") != "none"
        or configuration.get("delta.enableDeletionVectors") == "true"
        or "timestamp_ntz" in json.dumps(state["fields"])
    )


def frame_of(said: dict[str, Any]) -> dict[str, Any]:
    return {"columns": said["columns"], "rows": said["rows"]}


def latest(said: dict[str, Any]) -> int:
    return max(map(int, said["versions"]))


def operations_of(written: Written, names: Iterable[str]) -> Counter[str]:
    return Counter(
        operation["name"] for name in names for operation in written.said[name]["operations"].values()
    )


def by_effect(frame: dict[str, Any]) -> tuple[Counter[str], Counter[str]]:
    """Return the rows of changes that went, and those that came."""
    gone: Counter[str] = Counter()
    come: Counter[str] = Counter()
    effects = {"delete": gone, "update_preimage": gone, "insert": come, "update_postimage": come}
    for row in map(json.loads, frame["rows"]):
        kept = {key: value for key, value in row.items() if key not in ABOUT_THE_CHANGE}
        effects[row[CHANGE_TYPE]][json.dumps(kept, sort_keys=True)] += 1
    return gone, come


def times_of(frame: dict[str, Any]) -> dict[int, Any]:
    return {row[COMMIT_VERSION]: row[COMMIT_TIME] for row in map(json.loads, frame["rows"])}


def told_times(said: dict[str, Any], versions: Iterable[int], *, use_delta_format: bool) -> dict[int, Any]:
    """Return when commits were made, as the client has it: with the kernel it drops parts of a second."""
    times = {version: said["operations"][str(version)]["time"] for version in versions}
    if not use_delta_format:
        return times
    return {
        version: (EPOCH + timedelta(seconds=time // 1000)).isoformat(timespec="microseconds")
        for version, time in times.items()
    }


def without_time(frame: dict[str, Any]) -> dict[str, Any]:
    rows = (json.loads(row) for row in frame["rows"])
    kept = ({key: value for key, value in row.items() if key != COMMIT_TIME} for row in rows)
    return {
        "columns": sorted(frame["columns"]),
        "rows": sorted(json.dumps(row, sort_keys=True) for row in kept),
    }
