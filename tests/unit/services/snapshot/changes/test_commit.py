from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, Unsupported
from gateway.services.snapshot.changes.commit import Commit, CommitFile, parse_commits
from tests.builders import add, cdc, remove
from tests.cases import each_case

_METADATA = {"metaData": {"id": "t", "schemaString": "{}", "configuration": {"a": "b"}}}
_ZERO = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}


def file_of(version: int, *actions: dict[str, Any], content: bytes | None = None) -> CommitFile:
    lines = "".join(json.dumps(action) + "\n" for action in actions).encode()
    return CommitFile(
        version=version,
        timestamp=1000 + version,
        name=f"{version:020d}.json",
        content=lines if content is None else content,
    )


def parse(*actions: dict[str, Any]) -> Commit:
    [commit] = parse_commits([file_of(7, *actions)])
    return commit


def test_commits_that_are_parsed_together_keep_their_actions_apart_and_in_order():
    commits = parse_commits(
        [
            file_of(3, add("a"), add("b"), _METADATA),
            file_of(4, {"commitInfo": {"operation": "VACUUM"}}),
            file_of(5, remove("b"), add("c"), remove("a"), cdc("_change_data/x")),
            file_of(6, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, add("d")),
        ]
    )

    assert [(commit.version, commit.timestamp) for commit in commits] == [
        (3, 1003),
        (4, 1004),
        (5, 1005),
        (6, 1006),
    ]
    assert [commit.add["path"].to_list() for commit in commits] == [["a", "b"], [], ["c"], ["d"]]
    assert [commit.remove["path"].to_list() for commit in commits] == [[], [], ["b", "a"], []]
    assert [commit.cdc["path"].to_list() for commit in commits] == [[], [], ["_change_data/x"], []]
    assert [commit.metadata.id if commit.metadata else None for commit in commits] == ["t", None, None, None]
    assert [commit.protocol.min_reader_version if commit.protocol else None for commit in commits] == [
        None,
        None,
        None,
        2,
    ]


def test_a_commit_keeps_every_field_of_its_actions():
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 2, "cardinality": 3}
    fields = {"partitionValues": {"day": None}, "size": 9, "tags": {"k": "v"}, "deletionVector": vector}
    commit = parse(
        add("day=1/a", stats="{}", baseRowId=5, defaultRowCommitVersion=6, clusteringProvider="c", **fields),
        {"remove": {"path": "b", "deletionTimestamp": 4, "dataChange": False, "baseRowId": 8, **fields}},
        cdc("c", partitionValues={"day": "1"}, tags={"k": "v"}),
    )

    assert commit.add.to_dicts() == [
        {
            "path": "day=1/a",
            **fields,
            "modificationTime": 0,
            "dataChange": True,
            "stats": "{}",
            "baseRowId": 5,
            "defaultRowCommitVersion": 6,
            "clusteringProvider": "c",
            "encoded": "day%3D1/a",
        }
    ]
    assert commit.remove.to_dicts() == [
        {
            "path": "b",
            "deletionTimestamp": 4,
            "dataChange": False,
            "extendedFileMetadata": None,
            **fields,
            "stats": None,
            "baseRowId": 8,
            "defaultRowCommitVersion": None,
            "encoded": "b",
        }
    ]
    assert commit.cdc.to_dicts() == [
        {
            "path": "c",
            "partitionValues": {"day": "1"},
            "size": 1,
            "dataChange": False,
            "tags": {"k": "v"},
            "encoded": "c",
        }
    ]


def test_no_line_of_a_commit_moves_its_actions_to_another():
    # How commits were once told apart.
    spelled = {"sluice.endOfCommit": 5}

    commits = parse_commits([file_of(1, add("a"), spelled, add("b")), file_of(2, add("c"), spelled)])

    assert [commit.add["path"].to_list() for commit in commits] == [["a", "b"], ["c"]]


@each_case("action", ["add", "remove", "cdc"])
@each_case(
    "fields", [{"path": "a" * 20_000}, {"path": "a", "tags": {"k": "v" * 2_000_000}}], ids=["path", "tags"]
)
def test_a_file_of_which_no_answer_can_tell_is_refused(action, fields):
    with pytest.raises(Unsupported, match=r"goes beyond what is read: 00000000000000000002\.json .* bytes"):
        parse_commits([file_of(1, add("a")), file_of(2, {action: {"size": 1, **fields}})])


def test_a_remove_may_leave_out_size_and_partition_values():
    assert parse(remove("a")).remove.select("size", "partitionValues").row(0) == (None, None)


def test_a_size_that_is_none_is_not_taken_for_one():
    assert parse({"remove": {"path": "a", "size": -1}}).remove["size"].to_list() == [None]


@each_case(
    "action",
    [
        pytest.param({"add": {"path": "a"}}, id="added without a size"),
        pytest.param({"add": {"size": 1}}, id="added without a path"),
        pytest.param({"add": {"path": "a", "size": 2**53}}, id="larger than JSON can say"),
        pytest.param({"remove": {"size": 1}}, id="removed without a path"),
        pytest.param({"cdc": {"path": "a"}}, id="change data without a size"),
        pytest.param({"metaData": {"id": "t"}}, id="metadata without a schema"),
        pytest.param({"add": "a"}, id="no object"),
    ],
)
def test_the_damaged_one_of_several_commits_is_named(action):
    with pytest.raises(Unsupported, match=r"log is damaged: 00000000000000000002\.json"):
        parse_commits([file_of(1, add("a")), file_of(2, action), file_of(3, add("b"))])


@given(st.binary())
def test_any_bytes_are_a_commit_or_a_damage_that_is_named(content):
    try:
        [commit] = parse_commits([file_of(0, content=content)])
    except GatewayError as exc:
        told = str(exc)
    else:
        told = f"00000000000000000000.json with {commit.add.height} files"
    assert "00000000000000000000.json" in told


def test_a_writer_that_does_not_say_whether_data_changed_has_changed_it():
    commit = parse(
        {"add": {"path": "a", "size": 1}}, {"remove": {"path": "b"}}, {"cdc": {"path": "c", "size": 1}}
    )

    assert [rows["dataChange"].item() for rows in (commit.add, commit.remove, commit.cdc)] == [
        True,
        True,
        False,
    ]


@each_case(
    ("info", "idle"),
    [
        ({"operation": "MERGE", "operationMetrics": _ZERO}, True),
        ({"operation": "MERGE", "operationMetrics": {**_ZERO, "numTargetRowsUpdated": "1"}}, False),
        ({"operation": "MERGE", "operationMetrics": {"numTargetRowsUpdated": "0"}}, False),
        ({"operation": "MERGE"}, False),
        ({"operation": "UPDATE", "note": "MERGE", "operationMetrics": _ZERO}, False),
        ("MERGE", False),
    ],
)
def test_a_merge_that_counted_no_row_changed_nothing(info, idle):
    assert parse({"commitInfo": info}, add("a"), remove("b")).changed_nothing is idle
