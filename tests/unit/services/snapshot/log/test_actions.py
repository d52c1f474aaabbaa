from __future__ import annotations

import io
import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.demo.checkpoint import to_checkpoint
from gateway.errors import GatewayError, Unsupported
from gateway.services.snapshot.log.actions import read_checkpoint, read_commits
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.log.schema import FILES
from tests.builders import add, remove
from tests.cases import each_case
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.log.parquet_files import (
    FIXED,
    LONG,
    SHARED,
    SPLIT,
    Values,
    columns_file,
    plain,
    with_prefixes,
)

_NAME = "00000000000000000003.json"
_V2 = "00000000000000000003.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
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


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def read_commit(content: bytes):
    return read_commits([(_NAME, content)])


def test_a_commit_adds_files_with_all_that_the_log_says_of_them():
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    said = {
        "path": "day=1/a",
        "partitionValues": {"day": "1", "hour": None},
        "size": 5,
        "modificationTime": 7,
        "dataChange": False,
        "stats": '{"numRecords":1}',
        "tags": {"x": "y"},
        "deletionVector": vector,
        "baseRowId": 3,
        "defaultRowCommitVersion": 2,
        "clusteringProvider": "liquid",
    }

    actions = read_commit(lines({"commitInfo": {"operation": "WRITE"}}, {"add": {**said, "unheardOf": [{}]}}))

    assert actions.files.to_dicts() == [{**said, "encoded": "day%3D1/a"}]
    assert actions.protocol is None
    assert actions.metadata is None


def test_what_a_commit_does_not_say_of_a_file_is_null():
    [row] = read_commit(lines(add("b"))).files.to_dicts()

    assert {name for name, value in row.items() if value is None} == {
        *("stats", "tags", "baseRowId", "defaultRowCommitVersion", "clusteringProvider"),
        *(() if isinstance(row["deletionVector"], dict) else ("deletionVector",)),
    }


def test_a_file_without_a_deletion_vector_has_no_storage_type():
    content = lines(add("a"), add("b", deletionVector=None), add("c", deletionVector={}))

    files = read_commit(content).files

    assert files["deletionVector"].struct.field("storageType").to_list() == [None, None, None]


def test_a_commit_removes_files():
    vector = {"storageType": "i", "pathOrInlineDv": "xyz", "sizeInBytes": 1, "cardinality": 1}

    removes = [remove("a"), {"remove": {"path": "b", "deletionVector": vector}}]
    actions = read_commit(lines(*removes))

    assert actions.removed.rows() == [("a", None), ("b", "ixyz")]
    assert actions.files.is_empty()


@each_case(
    "content",
    [
        b'{"add":{"path":"a","size":1}}\n\n\n{"add":{"path":"b","size":1}}',
        b'\n{"add":{"path":"a","size":1}}\r\n{"add":{"path":"b","size":1}}\r\n',
        b'{"add":{"path":"a","size":1}}\n  \n\t\n{"add":{"path":"b","size":1}}\n\n',
        b'{"add":{"path":"a","size":1}}\n{"add":null}\n{}\n{"add":{"path":"b","size":1}}',
        b'{"add":{"path":"a","size":1}}\n{"x":{"add":{"path":"c"}}}\n{"add":{"path":"b","size":1}}',
        b'{"domainMetadata":{"domain":"d"}}\n{"txn":{"appId":"a","version":1}}\n'
        b'{"add":{"path":"a","size":1}}\n{"cdc":{"path":"c","size":1}}\n{"add":{"path":"b","size":1}}',
        b'{"checkpointMetadata":{"version":1}}\n{"sidecar":{"path":"x"}}\n'
        b'{"add":{"path":"a","size":1}}\n{"add":{"path":"b","size":1}}',
    ],
    ids=["blank", "crlf", "spaces", "nothing", "unknown", "other actions", "actions of checkpoints"],
)
def test_what_is_no_action_of_ours_is_passed_over(content):
    assert read_commit(content).files["path"].to_list() == ["a", "b"]


def test_a_line_may_be_as_long_as_it_likes():
    content = lines({"commitInfo": {"x": "y" * 5_000_000}}, add("a", stats="z" * 5_000_000))

    assert read_commit(content).files["stats"].str.len_bytes().to_list() == [5_000_000]


def test_one_file_with_one_deletion_vector_after_the_other_is_as_the_last_left_it():
    first = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1, "cardinality": 1}
    second = {**first, "offset": 2}
    commits = [
        lines(add("a")),
        lines(remove("a"), add("a", deletionVector=first)),
        lines({"remove": {"path": "a", "deletionVector": first}}, add("a", deletionVector=second)),
    ]

    actions = read_commits([(f"{n}.json", commit) for n, commit in enumerate(commits)])

    assert actions.files["deletionVector"].to_list() == [second]
    assert actions.dropped == 2


def test_a_commit_states_protocol_and_metadata():
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "appendOnly"],
    }

    actions = read_commit(lines({"protocol": protocol}, {"metaData": _METADATA}))

    assert actions.protocol == Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=("deletionVectors",),
        writer_features=("deletionVectors", "appendOnly"),
    )
    assert actions.metadata == Metadata(
        id="t",
        schema_string='{"type":"struct","fields":[]}',
        partition_columns=("day",),
        configuration={"delta.appendOnly": "true"},
        created_time=1,
    )


def test_a_commit_without_partition_values_has_none():
    actions = read_commit(b'{"add":{"path":"a","size":1}}\n')

    assert actions.files["partitionValues"].to_list() == [{}]


@each_case(
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
        b'{"metaData":{"id":"x","schemaString":"{}","partitionColumns":["a",null]}}\n',
        b'{"commitInfo":{"operation":"\xff"}}\n',
        b'{"add":{"path":"a","size":1,"deletionVector":{"storageType":"u","cardinality":1}}}\n',
        b'{"remove":{"path":"a","deletionVector":{"storageType":"u"}}}\n',
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


def test_of_several_descriptions_of_the_table_the_last_holds():
    commits = [lines({"metaData": {**_METADATA, "id": each}}) for each in ("t", "u", "v")]

    actions = read_commits([(f"{each}.json", commit) for each, commit in enumerate(commits)])

    assert actions.metadata is not None
    assert actions.metadata.id == "v"


def test_a_file_that_one_commit_adds_twice_is_as_it_was_added_last():
    actions = read_commit(lines(add("a", size=1), add("b"), add("a", size=2)))

    assert actions.files.select("path", "size").rows() == [("b", 1), ("a", 2)]
    assert actions.dropped == 1


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


def test_a_checkpoint_may_lack_fields_and_have_others():
    adds = pl.Series([{"path": "a", "size": 3, "clusteringProvider": "x", "unheardOf": 1}])
    content = parquet(pl.DataFrame({"add": adds, "newAction": [1]}))

    actions = read_checkpoint("c.parquet", content)

    assert dict(actions.files.schema) == FILES
    [row] = actions.files.to_dicts()
    assert row.pop("deletionVector")["storageType"] is None
    assert {name: value for name, value in row.items() if value} == {
        "path": "a",
        "encoded": "a",
        "size": 3,
        "clusteringProvider": "x",
    }
    assert row["partitionValues"] == {}
    assert actions.parsed is None


_STATED = pl.Series("protocol", [{"minReaderVersion": 1, "minWriterVersion": 2}])
_NO_ADD = pl.Series("add", [None], dtype=pl.Struct({"path": pl.String, "size": pl.Int64}))


@each_case(
    ("name", "columns"),
    [
        ("c.parquet", [_STATED, _NO_ADD]),
        ("c.parquet", [_STATED, pl.Series("add", [None])]),
        ("c.parquet", [_STATED, pl.Series("checkpointMetadata", [{"version": 3}])]),
        ("_sidecars/s.parquet", [_NO_ADD]),
        ("_sidecars/s.parquet", [_NO_ADD.clear()]),
        ("_sidecars/s.parquet", [_NO_ADD.alias("remove")]),
    ],
    ids=["no adds", "no type", "v2", "sidecar", "empty sidecar", "sidecar of removes"],
)
def test_a_checkpoint_without_adds_has_no_files(name, columns):
    assert read_checkpoint(name, parquet(pl.DataFrame(columns))).files.is_empty()


def test_a_checkpoint_of_a_table_without_files_has_none():
    [content] = to_checkpoint([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}])

    assert read_checkpoint("c.parquet", content).files.is_empty()


@each_case(
    ("name", "columns", "reason"),
    [
        ("c.parquet", {"protocol": [{"minReaderVersion": 1}]}, "is not a checkpoint"),
        ("c.parquet", {"number": [1, 2]}, "is not a checkpoint"),
        ("_sidecars/s.parquet", {"number": [1, 2]}, "is not a sidecar"),
        ("_sidecars/s.parquet", {"sidecar": [{"path": "t.parquet"}]}, "is not a sidecar"),
        ("c.parquet", {"add": [[{"path": "a", "size": 1}]]}, "cannot be parsed: add is not a struct"),
        ("c.parquet", {"add": ["a"]}, "cannot be parsed: add is not a struct"),
        ("_sidecars/s.parquet", {"add": [1]}, "cannot be parsed: add is not a struct"),
        ("c.parquet", {"add": [None], "sidecar": ["a"]}, "cannot be parsed: sidecar is not a struct"),
    ],
)
def test_what_is_not_a_checkpoint_is_not_one_without_files(name, columns, reason):
    with pytest.raises(Unsupported, match=f"the table's log is damaged: {name} {reason}"):
        read_checkpoint(name, parquet(pl.DataFrame(columns)))


def test_a_checkpoint_with_a_partition_column_without_a_name_is_damaged():
    [content] = to_checkpoint([{"metaData": {**_METADATA, "partitionColumns": [None]}}])

    with pytest.raises(Unsupported, match=r"damaged: c\.parquet .* a partition column that has no name"):
        read_checkpoint("c.parquet", content)


def test_a_checkpoint_tells_its_sidecars():
    frame = pl.DataFrame({"sidecar": [None, {"path": "s.parquet"}, {"path": "t.parquet"}]})
    manifest = lines(
        {"checkpointMetadata": {"version": 3, "tags": {}}},
        {"sidecar": {"path": "s.parquet", "sizeInBytes": 1}},
        {"sidecar": {"path": "t.parquet", "sizeInBytes": 1}},
    )

    for name, content in (("c.parquet", parquet(frame)), ("c.json", manifest)):
        assert read_checkpoint(name, content).sidecars == ("s.parquet", "t.parquet")


def test_a_checkpoint_in_json_says_what_its_commits_said():
    said: list[Any] = [
        {"checkpointMetadata": {"version": 3}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": _METADATA},
        add("a", size=5, stats='{"numRecords":1}', partitionValues={"day": None}),
        remove("c"),
    ]

    checkpoint = read_checkpoint(_V2, lines(*said))

    assert checkpoint.files.to_dicts() == read_commit(lines(*said)).files.to_dicts()
    assert checkpoint.metadata == read_commit(lines(*said)).metadata
    assert checkpoint.removed.is_empty()


@each_case(
    ("name", "content", "reason"),
    [
        (_V2, b"", "is not a checkpoint"),
        (_V2, b'{"protocol":{"minReaderVersion":1}}', "is not a checkpoint"),
        (_V2, b'{"checkpointMetadata":{"version":4}}', "is of another version"),
        (_V2, b'{"checkpointMetadata":{"version":2}}', "is of another version"),
        (_V2, b'{"checkpointMetadata":{"version":3}}\n{"sidecar":{"sizeInBytes":1}}', "without a path"),
        (_V2, b'{"checkpointMetadata":{"version":3}}\n{"sidecar":{"pa', "cannot be parsed"),
    ],
)
def test_a_checkpoint_in_json_that_is_none_is_named(name, content, reason):
    with pytest.raises(Unsupported, match=f"the table's log is damaged: {name} .*{reason}"):
        read_checkpoint(name, content)


def test_parsed_statistics_are_kept_as_they_are_beside_the_text():
    parsed = {"numRecords": 3, "minValues": {"a": 1.5}}
    first = {"path": "a", "size": 1, "stats": '{"numRecords": 3}', "stats_parsed": parsed}
    second = {"path": "b", "size": 1, "stats": None, "stats_parsed": None}
    frame = pl.DataFrame({"add": [first, None, second], "protocol": [None, {"minReaderVersion": 1}, None]})

    actions = read_checkpoint("c.parquet", parquet(frame))

    assert actions.files["stats"].to_list() == ['{"numRecords": 3}', None]
    assert actions.parsed is not None
    assert actions.parsed.to_list()[0] == parsed
    assert actions.parsed.len() == actions.files.height


def test_texts_are_made_of_parsed_values_where_a_checkpoint_has_nothing_else():
    parsed = {"numRecords": 3, "minValues": {"col-1": 1, "col-2": None}}
    adds = [{"path": "a", "size": 1, "stats_parsed": parsed, "partitionValues_parsed": {"p": 7, "q": None}}]

    [row] = read_checkpoint("c.parquet", parquet(pl.DataFrame({"add": adds}))).files.to_dicts()

    assert row["stats"] == '{"numRecords":3,"minValues":{"col-1":1}}'
    assert row["partitionValues"] == {"p": "7", "q": None}


@each_case("encoding", [SHARED, SPLIT], ids=["shared", "split"])
@each_case("stats", [None, '{"numRecords":1}'])
def test_statistics_in_an_encoding_that_is_not_decoded_are_left_out(stats, encoding):
    decimals = [n.to_bytes(16) for n in range(2)]
    encoded = with_prefixes(*decimals) if encoding == SHARED else b"\0" * 32
    columns = {
        ("add", "path"): Values(encoded=plain(b"a", b"b"), count=2),
        ("add", "size"): Values(encoded=b"\1" + b"\0" * 15, count=2, kind=LONG),
        ("add", "stats_parsed", "minValues", "d"): Values(
            encoded=encoded, count=2, kind=FIXED, length=16, encoding=encoding
        ),
    }
    if stats is not None:
        columns["add", "stats"] = Values(encoded=plain(stats.encode(), stats.encode()), count=2)

    actions = read_checkpoint("c.parquet", columns_file(columns))

    assert actions.files.select("path", "size", "stats").rows() == [("a", 1, stats), ("b", 0, stats)]
    assert actions.parsed is None


def test_a_partition_value_in_an_encoding_that_is_not_decoded_is_not_left_out():
    columns = {
        ("add", "path"): Values(encoded=plain(b"a"), count=1),
        ("add", "size"): Values(encoded=b"\0" * 8, count=1, kind=LONG),
        ("add", "partitionValues_parsed", "d"): Values(
            encoded=b"\0" * 16, count=1, kind=FIXED, length=16, encoding=SPLIT
        ),
    }

    with pytest.raises(Unsupported, match=r"the table's log is damaged: c\.parquet cannot be parsed"):
        read_checkpoint("c.parquet", columns_file(columns))


@settings(max_examples=examples(0.5))
@given(st.data())
def test_a_checkpoint_that_was_cut_short_is_named(data):
    [content] = to_checkpoint([add("a"), add("b")])
    keep = data.draw(st.integers(0, len(content) - 1))

    with pytest.raises(Unsupported, match=r"the table's log is damaged: c\.parquet cannot be parsed"):
        read_checkpoint("c.parquet", content[:keep])


@settings(max_examples=examples(0.5))
@given(st.dictionaries(_TEXT, st.none() | _TEXT, max_size=4), st.none() | _TEXT, st.booleans())
def test_any_text_survives_a_commit(values, stats, ensure_ascii):
    content = lines(add("a", partitionValues=values, stats=stats), ensure_ascii=ensure_ascii)

    [row] = read_commit(content).files.to_dicts()

    assert row["partitionValues"] == values
    assert row["stats"] == stats


@settings(max_examples=examples(0.5))
@given(st.binary(max_size=200))
def test_any_bytes_are_a_commit_or_a_clear_error(content):
    try:
        assert read_commit(content).files["path"].null_count() == 0
    except GatewayError as exc:
        error = exc
    else:
        return
    assert _NAME in error.message
