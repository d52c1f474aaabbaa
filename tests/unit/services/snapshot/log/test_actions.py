from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.demo.checkpoint import to_checkpoint
from gateway.errors import GatewayError, Unsupported
from gateway.services.snapshot.log.actions import FILES, read_checkpoint, read_commits
from gateway.services.snapshot.state.snapshot import Metadata, Protocol
from tests.builders import add, remove

_NAME = "00000000000000000003.json"
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_METADATA = {
    "id": "t",
    "name": None,
    "format": {"provider": "parquet", "options": {}},
    "schemaString": '{"type":"struct","fields":[]}',
    "partitionColumns": ["day"],
    "configuration": {"delta.appendOnly": "true"},
    "createdTime": 1,
}


def lines(*actions, ensure_ascii: bool = True) -> bytes:
    return "".join(json.dumps(action, ensure_ascii=ensure_ascii) + "\n" for action in actions).encode()


def read_commit(content: bytes):
    return read_commits([(_NAME, content)])


def test_a_commit_adds_files_with_what_the_log_says_of_them():
    actions = read_commit(
        lines(
            {"commitInfo": {"operation": "WRITE"}},
            add("day=1/a", size=5, stats='{"numRecords":1}', partitionValues={"day": "1", "hour": None}),
            add("b", tags={"x": "y"}, deletionVector={"storageType": "u", "cardinality": 1}),
        ),
    )

    assert actions.files.to_dicts() == [
        {
            "path": "day=1/a",
            "encoded": "day%3D1/a",
            "partitionValues": {"day": "1", "hour": None},
            "size": 5,
            "stats": '{"numRecords":1}',
            "hasDeletionVector": False,
        },
        {
            "path": "b",
            "encoded": "b",
            "partitionValues": {},
            "size": 1,
            "stats": None,
            "hasDeletionVector": True,
        },
    ]
    assert actions.protocol is None
    assert actions.metadata is None


def test_a_commit_removes_files():
    actions = read_commit(lines(remove("a"), remove("b")))

    assert actions.removed.to_list() == ["a", "b"]
    assert actions.files.is_empty()


def test_a_commit_states_protocol_and_metadata():
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}

    actions = read_commit(lines({"protocol": protocol}, {"metaData": _METADATA}))

    assert actions.protocol == Protocol(min_reader_version=3, reader_features=("deletionVectors",))
    assert actions.metadata == Metadata(
        id="t",
        schema_string='{"type":"struct","fields":[]}',
        partition_columns=("day",),
        configuration={"delta.appendOnly": "true"},
    )


def test_a_commit_without_partition_values_has_none():
    actions = read_commit(b'{"add":{"path":"a","size":1}}\n')

    assert actions.files["partitionValues"].to_list() == [{}]


@pytest.mark.parametrize(
    "content",
    [
        b'{"add":{"path":"a","si',
        b"not json at all",
        b'{"add":{"path":"a","size":"large"}}\n',
        b'{"add":{"path":"a","size":9223372036854775808}}\n',
        b'{"add":{"path":"\xff","size":1}}\n',
        b"[1]\n",
        b'{"add":{"size":1}}\n',
        b'{"add":{"path":"a"}}\n',
        b'{"add":{"path":"a","size":-1}}\n',
        b'{"add":{"path":"a","size":9007199254740992}}\n',
        b'{"remove":{"dataChange":true}}\n',
        b'{"metaData":{"id":"x"}}\n',
    ],
)
def test_a_damaged_commit_is_named(content):
    with pytest.raises(Unsupported, match=rf"the table's log is damaged: {_NAME}"):
        read_commit(content)


def test_the_damaged_one_of_several_commits_is_named():
    commits = [("a.json", lines(add("a"))), ("b.json", b'{"add"'), ("c.json", lines(add("c")))]

    with pytest.raises(Unsupported, match=r"the table's log is damaged: b\.json"):
        read_commits(commits)


def test_of_several_commits_the_last_protocol_and_metadata_hold():
    first = lines({"protocol": {"minReaderVersion": 1}}, {"metaData": _METADATA})
    second = lines({"protocol": {"minReaderVersion": 2}})

    actions = read_commits([("a.json", first), ("b.json", second), ("c.json", b"")])

    assert actions.protocol == Protocol(min_reader_version=2)
    assert actions.metadata is not None
    assert actions.metadata.id == "t"


def test_a_reader_feature_without_a_name_is_one_that_nobody_knows():
    actions = read_commit(lines({"protocol": {"minReaderVersion": 3, "readerFeatures": [None]}}))

    assert actions.protocol == Protocol(min_reader_version=3, reader_features=("",))


def test_an_empty_commit_says_nothing():
    actions = read_commit(b"")

    assert actions.files.is_empty()
    assert actions.removed.is_empty()


def test_a_checkpoint_says_what_its_commits_said():
    said: list[Any] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": _METADATA},
        add("a", size=5, stats='{"numRecords":1}', partitionValues={"day": None}),
        add("b", partitionValues={"day": "é"}),
        remove("c"),
    ]
    [content] = to_checkpoint(said)

    checkpoint, commit = read_checkpoint("c.parquet", content), read_commit(lines(*said))

    assert checkpoint.files.to_dicts() == commit.files.to_dicts()
    assert checkpoint.protocol == commit.protocol
    assert checkpoint.metadata == commit.metadata
    # A tombstone says nothing about a file that is live.
    assert checkpoint.removed.is_empty()


def test_a_checkpoint_may_lack_fields_and_have_others(tmp_path):
    file = tmp_path / "c.parquet"
    adds = pl.Series([{"path": "a", "size": 3, "clusteringProvider": "x"}])
    pl.DataFrame({"add": adds, "checkpointMetadata": [1]}).write_parquet(file)

    files = read_checkpoint("c.parquet", file.read_bytes()).files

    assert files.to_dicts() == [
        {
            "path": "a",
            "encoded": "a",
            "partitionValues": {},
            "size": 3,
            "stats": None,
            "hasDeletionVector": False,
        }
    ]
    assert dict(files.schema) == FILES


def test_a_checkpoint_whose_files_are_in_sidecars_is_refused(tmp_path):
    file = tmp_path / "c.parquet"
    pl.DataFrame({"sidecar": [{"path": "s.parquet", "sizeInBytes": 1}]}).write_parquet(file)

    with pytest.raises(Unsupported, match=r"c\.parquet is a V2 checkpoint"):
        read_checkpoint("c.parquet", file.read_bytes())


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_a_checkpoint_that_was_cut_short_is_named(data):
    [content] = to_checkpoint([add("a"), add("b")])
    keep = data.draw(st.integers(0, len(content) - 1))

    with pytest.raises(Unsupported, match=r"the table's log is damaged: c\.parquet cannot be parsed"):
        read_checkpoint("c.parquet", content[:keep])


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(_TEXT, st.none() | _TEXT, max_size=4), st.none() | _TEXT, st.booleans())
def test_any_text_survives_a_commit(values, stats, ensure_ascii):
    content = lines(add("a", partitionValues=values, stats=stats), ensure_ascii=ensure_ascii)

    [row] = read_commit(content).files.to_dicts()

    assert row["partitionValues"] == values
    assert row["stats"] == stats


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_commit_or_a_clear_error(content):
    try:
        assert read_commit(content).files["path"].null_count() == 0
    except GatewayError as exc:
        error = exc
    else:
        return
    assert _NAME in error.message
