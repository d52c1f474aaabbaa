from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import Unsupported
from gateway.services.snapshot.answer.batch import MAX_BYTES, MAX_FILES
from gateway.services.snapshot.answer.fitting import fitting
from gateway.services.snapshot.answer.line import MAX_STATS_BYTES, ActionKind
from gateway.services.snapshot.answer.page import join_pages, render_actions, render_files
from gateway.v1 import snapshot_pb2 as pb
from tests.fakes.grants import GRANT
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.answer.pages import (
    DELTA,
    EXPIRATION,
    PARQUET,
    SCHEMAS,
    files_of,
    many,
    no_lines,
    render_rows,
    rows_of,
    seen,
    seen_actions,
    seen_files,
    splice,
)

_FORMATS = pytest.mark.parametrize("line", [PARQUET, DELTA], ids=["parquet", "delta"])
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_RELATIVE = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
_VECTOR_PATH = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
_INLINE = {
    "storageType": "i",
    "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "offset": None,
    "sizeInBytes": 40,
    "cardinality": 6,
}


def pages_of(files, line=PARQUET, **options):
    return list(render_files(files, line, GRANT, rendered=no_lines(), **options))


def page_of(*rows, kind=ActionKind.FILE, line=PARQUET):
    return render_rows(rows_of(*rows, kind=kind), kind, line, GRANT)


def test_a_file_is_a_line_with_what_the_log_says_of_it():
    row = {
        "path": "day=1/a",
        "encoded": "day%3D1/a",
        "partitionValues": {"day": "1"},
        "size": 573,
        "stats": '{"numRecords":1}',
    }

    page = page_of(row)

    assert splice(page) == (
        b'{"file":{"url":"https://0/day%3D1/a","id":"'
        + hashlib.md5(b"day=1/a").hexdigest().encode()
        + b'","expirationTimestamp":1652140800000,'
        b'"partitionValues":{"day":"1"},"size":573,"stats":"{\\"numRecords\\":1}"}}\n'
    )
    assert (page.files, page.file_bytes) == (1, 573)


def test_in_the_delta_format_a_file_is_an_action_with_every_field_that_the_log_has():
    row = {
        "path": "day=1/a",
        "encoded": "day%3D1/a",
        "partitionValues": {"day": "1"},
        "size": 573,
        "modificationTime": 7,
        "dataChange": False,
        "stats": '{"numRecords":1}',
        "tags": {"t": "u"},
        "baseRowId": 3,
        "defaultRowCommitVersion": 2,
        "clusteringProvider": "liquid",
    }

    assert seen(page_of(row, line=DELTA)) == [
        {
            "file": {
                "id": hashlib.sha256(b"day=1/a").hexdigest(),
                "expirationTimestamp": EXPIRATION,
                "deltaSingleAction": {
                    "add": {
                        "path": "https://0/day%3D1/a",
                        "partitionValues": {"day": "1"},
                        "size": 573,
                        "modificationTime": 7,
                        "dataChange": False,
                        "stats": '{"numRecords":1}',
                        "tags": {"t": "u"},
                        "baseRowId": 3,
                        "defaultRowCommitVersion": 2,
                        "clusteringProvider": "liquid",
                    }
                },
            }
        }
    ]


def test_in_the_delta_format_fields_without_a_value_are_left_out():
    [action] = seen_actions(page_of({"path": "a"}, line=DELTA))

    assert set(action) == {"path", "partitionValues", "size", "modificationTime", "dataChange"}


def test_in_the_delta_format_files_with_and_without_a_field_stand_side_by_side():
    rows = [{"path": "a", "tags": {"t": "1"}, "stats": "x"}, {"path": "b", "baseRowId": 5}, {"path": "c"}]

    actions = seen_actions(page_of(*rows, line=DELTA))

    assert [action.get("tags") for action in actions] == [{"t": "1"}, None, None]
    assert [action.get("stats") for action in actions] == ["x", None, None]
    assert [action.get("baseRowId") for action in actions] == [None, 5, None]
    assert all(None not in action.values() for action in actions)


def test_a_file_without_statistics_has_no_such_field():
    [file] = seen_files(page_of({"path": "a"}))

    assert set(file) == {"url", "id", "partitionValues", "size", "expirationTimestamp"}


def test_files_with_and_without_statistics_stand_side_by_side():
    page = page_of({"path": "a", "stats": "x"}, {"path": "b"}, {"path": "c", "stats": ""})

    assert [file.get("stats") for file in seen_files(page)] == ["x", None, ""]


def test_partition_values_are_those_of_the_log_in_both_formats():
    values = {"p": None, "q": "", "r": "null"}
    row = {"path": "a", "partitionValues": values}

    # A null is null to every client; an empty text is one to Spark, for a column of strings.
    assert seen_files(page_of(row))[0]["partitionValues"] == values
    assert seen_actions(page_of(row, line=DELTA))[0]["partitionValues"] == values


@_FORMATS
def test_an_answer_by_version_states_version_and_timestamp(line):
    at = replace(line, version=4, timestamp=1700000000000)

    [file] = seen_files(page_of({"path": "a"}, line=at))

    assert (file["version"], file["timestamp"]) == (4, 1700000000000)


@pytest.mark.parametrize("kind", [ActionKind.ADD, ActionKind.REMOVE, ActionKind.CDF])
def test_changes_in_the_parquet_format_are_named_by_what_they_are(kind):
    row = {"path": "a", "partitionValues": {"p": "1"}, "size": 5, "stats": "s", "deletionTimestamp": 3}
    line = replace(PARQUET, version=4, timestamp=6)

    [change] = seen(page_of(row, kind=kind, line=line))

    assert change == {
        kind.value: {
            "url": "https://0/a",
            "id": hashlib.md5(b"a").hexdigest(),
            "expirationTimestamp": EXPIRATION,
            "version": 4,
            "timestamp": 6,
            "partitionValues": {"p": "1"},
            "size": 5,
            **({"stats": "s"} if kind is ActionKind.ADD else {}),
        }
    }


@pytest.mark.parametrize(
    ("kind", "action", "fields"),
    [
        (ActionKind.ADD, "add", {"modificationTime": 9, "stats": "s"}),
        (
            ActionKind.REMOVE,
            "remove",
            {"deletionTimestamp": 3, "extendedFileMetadata": True, "stats": "s", "baseRowId": 8},
        ),
        (ActionKind.CDF, "cdc", {}),
    ],
)
def test_changes_in_the_delta_format_are_actions(kind, action, fields):
    common = {"partitionValues": {"p": "1"}, "size": 5, "dataChange": kind is not ActionKind.CDF}
    row = {"path": "a", "tags": {"t": "1"}, **common, **fields}

    [file] = seen_files(page_of(row, kind=kind, line=replace(DELTA, version=4, timestamp=6)))

    assert file == {
        "id": hashlib.sha256(b"a").hexdigest(),
        "version": 4,
        "timestamp": 6,
        "expirationTimestamp": EXPIRATION,
        "deltaSingleAction": {action: {"path": "https://0/a", "tags": {"t": "1"}, **common, **fields}},
    }


def test_a_change_without_the_fields_that_clients_insist_on_gets_what_it_means_without_them():
    row = {"path": "a", "dataChange": None, "modificationTime": None}

    [added] = seen_actions(page_of(row, kind=ActionKind.ADD, line=DELTA))
    [changed] = seen_actions(page_of(row, kind=ActionKind.CDF, line=DELTA))

    assert (added["dataChange"], added["modificationTime"]) == (True, 0)
    assert changed["dataChange"] is False


@_FORMATS
@pytest.mark.parametrize("fault", [{"size": None}, {"size": -1}, {"partitionValues": None}])
def test_a_removed_file_of_which_the_log_says_too_little_is_refused(line, fault):
    with pytest.raises(Unsupported, match="does not say the size"):
        page_of({"path": "a", **fault}, kind=ActionKind.REMOVE, line=line)


def test_a_relative_deletion_vector_becomes_a_file_with_a_url_and_an_id():
    page = page_of({"path": "a", "deletionVector": _RELATIVE}, {"path": "b"}, line=DELTA)

    first, second = seen_files(page)

    assert first["deletionVectorFileId"] == hashlib.sha256(_VECTOR_PATH.encode()).hexdigest()
    assert first["deltaSingleAction"]["add"]["deletionVector"] == {
        "storageType": "p",
        "pathOrInlineDv": f"https://0/{_VECTOR_PATH}",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    assert "deletionVectorFileId" not in second
    assert "deletionVector" not in second["deltaSingleAction"]["add"]
    assert page.files == 2


def test_an_inline_deletion_vector_stays_as_it_is():
    [file] = seen_files(page_of({"path": "a", "deletionVector": _INLINE}, line=DELTA))

    assert "deletionVectorFileId" not in file
    assert file["deltaSingleAction"]["add"]["deletionVector"] == {
        name: value for name, value in _INLINE.items() if value is not None
    }


def test_deletion_vectors_of_all_kinds_and_files_of_several_locations_stand_on_one_page():
    absolute = {**_RELATIVE, "storageType": "p", "pathOrInlineDv": "s3://archive/orders/v%20w.bin"}
    rows = [
        {"path": "a", "deletionVector": absolute},
        {"path": "b", "deletionVector": _INLINE},
        {"path": "s3a://archive/orders/x/c", "encoded": None, "deletionVector": _RELATIVE},
        {"path": "d"},
    ]

    page = page_of(*rows, line=DELTA)

    actions = seen_actions(page)
    assert [action["path"] for action in actions] == [
        "https://0/a",
        "https://0/b",
        "https://1/x/c",
        "https://0/d",
    ]
    assert [(action.get("deletionVector") or {}).get("pathOrInlineDv") for action in actions] == [
        "https://1/v%20w.bin",
        _INLINE["pathOrInlineDv"],
        f"https://0/{_VECTOR_PATH}",
        None,
    ]
    assert [(group.location, group.paths) for group in page.groups] == [
        (0, f"a\nb\n{_VECTOR_PATH}\nd".encode()),
        (1, b"v%20w.bin\nx/c"),
    ]
    assert page.hole_groups == bytes([0, 1, 0, 1, 0, 0])


def test_the_parquet_format_never_drops_a_deletion_vector_silently():
    with pytest.raises(Unsupported, match="deletionVectors"):
        page_of({"path": "a", "deletionVector": _INLINE})


def test_paths_of_one_auxiliary_location_are_one_group():
    page = page_of({"path": "s3://archive/orders/a", "encoded": None})

    assert [(group.location, group.paths) for group in page.groups] == [(1, b"a")]
    assert page.hole_groups == b""


def test_rows_without_encoded_paths_are_encoded():
    rows = rows_of({"path": "p=1/a"}, kind=ActionKind.REMOVE).drop("encoded")

    [change] = seen(render_rows(rows, ActionKind.REMOVE, PARQUET, GRANT))

    assert change["remove"]["url"] == "https://0/p%3D1/a"


@_FORMATS
def test_no_files_are_no_pages(line):
    assert pages_of(files_of(), line) == []
    assert list(render_actions(rows_of(), ActionKind.ADD, line, GRANT)) == []
    assert render_rows(rows_of(), ActionKind.ADD, line, GRANT) == pb.FilePage()


@_FORMATS
def test_actions_of_any_number_make_pages_in_their_order(line):
    rows = many(3 * MAX_FILES + 1).frame

    pages = list(render_actions(rows, ActionKind.ADD, line, GRANT))

    assert sum(page.files for page in pages) == rows.height
    assert b"\n".join(page.groups[0].paths for page in pages) == "\n".join(rows["path"]).encode()


@_FORMATS
def test_a_page_has_at_most_so_many_files_and_keeps_their_order(line):
    pages = pages_of(many(3 * MAX_FILES + 1), line)

    assert [page.files for page in pages] == [*[MAX_FILES] * 3, 1]
    assert [file["id"] for file in seen_files(*pages)] == [
        (hashlib.md5 if line is PARQUET else hashlib.sha256)(b"f%d" % number).hexdigest()
        for number in range(3 * MAX_FILES + 1)
    ]


@_FORMATS
@pytest.mark.parametrize("text", ["x", '"', "é", "\u2028", "🚰"])
def test_a_page_has_at_most_so_many_bytes(text, line):
    pages = pages_of(many(200, stats=text * 20_000), line)

    assert sum(page.files for page in pages) == 200
    assert all(weight(page) <= MAX_BYTES for page in pages)
    assert len(pages) < 200


@_FORMATS
def test_long_partition_values_make_short_pages(line):
    pages = pages_of(many(100, partitionValues={"a": None, "b": "é" * 20_000}), line)

    assert sum(page.files for page in pages) == 100
    assert all(weight(page) <= MAX_BYTES for page in pages)


@_FORMATS
def test_long_partition_names_make_short_pages(line):
    names = {f"{number:02d}{'k' * 200}": None for number in range(50)}

    pages = pages_of(many(1000, partitionValues=names), line)

    assert sum(page.files for page in pages) == 1000
    assert all(weight(page) <= MAX_BYTES for page in pages)


def test_long_paths_tags_and_inline_vectors_make_short_pages():
    long = files_of(
        *(
            {
                "path": f"{number}/{'x' * 3000}",
                "tags": {"t": "y" * 3000},
                "deletionVector": {**_INLINE, "pathOrInlineDv": "0" * 3000},
            }
            for number in range(500)
        )
    )

    pages = pages_of(long, DELTA)

    assert sum(page.files for page in pages) == 500
    assert all(weight(page) <= MAX_BYTES for page in pages)
    assert len(seen_files(*pages)) == 500


def test_as_many_rows_as_fit_make_one_page():
    rows = many(2 * MAX_FILES).frame
    long = many(200, stats="x" * 20_000).frame

    assert fitting(rows) == MAX_FILES
    assert 1 < fitting(long) < 200
    assert len(render_rows(long.head(fitting(long)), ActionKind.FILE, DELTA, GRANT).lines) <= MAX_BYTES
    assert fitting(many(1, partitionValues={"a": "x" * 2 * MAX_BYTES}).frame) == 1


def test_statistics_that_would_fill_a_message_are_left_out():
    rows = [{"path": "a", "stats": "x" * (MAX_STATS_BYTES + 1)}, {"path": "b", "stats": "x"}]

    assert [file.get("stats") for file in seen_files(page_of(*rows))] == [None, "x"]
    assert [action.get("stats") for action in seen_actions(page_of(*rows, line=DELTA))] == [None, "x"]


def test_a_page_is_rendered_when_it_is_asked_for():
    broken = {"path": "s3://elsewhere/x", "encoded": None}
    good = [{"path": f"f{number}"} for number in range(MAX_FILES)]

    pages = render_files(files_of(*good, broken), PARQUET, GRANT, rendered=no_lines())

    # The first page comes though one after it cannot be rendered.
    assert next(pages).files == MAX_FILES
    with pytest.raises(Unsupported):
        next(pages)


@_FORMATS
def test_only_live_and_kept_files_are_told(line):
    files = files_of(*({"path": str(number)} for number in range(4)), live=[True, True, False, True])
    kept = pl.Series([True, False, True, True])

    [page] = pages_of(files, line, kept=kept)

    assert page.groups[0].paths == b"0\n3"


def test_the_few_files_that_a_predicate_keeps_of_many_make_full_pages():
    files = many(120_000)
    kept = pl.Series(number % 100 == 0 for number in range(120_000))

    pages = pages_of(files, kept=kept)

    assert [page.files for page in pages] == [1000, 200]
    assert pages[0].groups[0].paths.startswith(b"f0\nf100\nf200\n")


def test_pages_are_joined_into_one_with_their_lines_in_order():
    first = page_of({"path": "a", "deletionVector": _RELATIVE}, {"path": "b"}, line=DELTA)
    told = pb.FilePage(lines=b'{"metaData":{}}\n')
    second = page_of(
        {"path": "s3://archive/orders/c", "encoded": None}, {"path": "d"}, kind=ActionKind.ADD, line=DELTA
    )
    third = page_of({"path": "e"}, kind=ActionKind.CDF, line=DELTA)

    joined = join_pages([first, told, second, third])

    assert splice(joined) == b"".join(splice(page) for page in (first, told, second, third))
    assert (joined.files, joined.file_bytes) == (5, 5)
    assert [group.location for group in joined.groups] == [0, 1]


def test_pages_of_one_location_stay_one_group():
    joined = join_pages([page_of({"path": "a"}), page_of({"path": "b"})])

    assert [(group.location, group.paths) for group in joined.groups] == [(0, b"a\nb")]
    assert joined.hole_groups == b""
    assert join_pages([]) == pb.FilePage()


def weight(page: pb.FilePage) -> int:
    return len(page.lines) + sum(len(group.paths) for group in page.groups)


_VECTORS = st.none() | st.sampled_from([_RELATIVE, {**_RELATIVE, "offset": None}, _INLINE])
_ROWS = st.fixed_dictionaries(
    {
        "path": st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True),
        "partitionValues": st.dictionaries(_TEXT, st.none() | _TEXT, max_size=3),
        "size": st.integers(0, 2**53 - 1),
        "modificationTime": st.integers(0, 2**62),
        "deletionTimestamp": st.none() | st.integers(0, 2**62),
        "dataChange": st.booleans(),
        "extendedFileMetadata": st.none() | st.booleans(),
        "stats": st.none() | _TEXT,
        "tags": st.none() | st.dictionaries(_TEXT, st.none() | _TEXT, max_size=2),
        "deletionVector": _VECTORS,
        "baseRowId": st.none() | st.integers(-(2**63), 2**63 - 1),
        "defaultRowCommitVersion": st.none() | st.integers(0, 2**62),
        "clusteringProvider": st.none() | _TEXT,
    }
)


@settings(max_examples=examples(1.5))
@given(
    st.lists(_ROWS, min_size=1, max_size=6),
    st.sampled_from(ActionKind),
    st.sampled_from([PARQUET, DELTA]),
    st.none() | st.integers(0, 2**40),
)
def test_lines_are_what_writing_them_one_by_one_gives(rows, kind, line, version):
    line = replace(line, version=version, timestamp=None if version is None else version + 1)
    if line.response_format == pb.RESPONSE_FORMAT_PARQUET:
        rows = [{**row, "deletionVector": None} for row in rows]

    page = page_of(*rows, kind=kind, line=line)

    assert page.lines.isascii()
    assert page.lines.endswith(b"}\n")
    assert list(page.holes) == sorted(page.holes)
    naive = naive_parquet if line.response_format == pb.RESPONSE_FORMAT_PARQUET else naive_delta
    assert seen(page) == [json.loads(json.dumps(naive(row, kind, version))) for row in rows]


def naive_parquet(row, kind, version):
    names = ["partitionValues", "size", *(["stats"] if kind in {ActionKind.FILE, ActionKind.ADD} else [])]
    return {
        kind.value: {
            "url": f"https://0/{row['path']}",
            "id": hashlib.md5(row["path"].encode()).hexdigest(),
            "expirationTimestamp": EXPIRATION,
            **naive_at(version),
            **naive_members(row, names),
        }
    }


def naive_delta(row, kind, version):
    action = {"file": "add", "add": "add", "remove": "remove", "cdf": "cdc"}[kind.value]
    names = [name for name in SCHEMAS[kind] if name not in {"path", "encoded", "deletionVector"}]
    members = {"path": f"https://0/{row['path']}", **naive_members(row, names)}
    file = {
        "id": hashlib.sha256(row["path"].encode()).hexdigest(),
        "expirationTimestamp": EXPIRATION,
        **naive_at(version),
    }
    vector = row["deletionVector"] if "deletionVector" in SCHEMAS[kind] else None
    if vector is not None:
        members["deletionVector"] = naive_members(vector, vector)
        if vector["storageType"] == "u":
            file["deletionVectorFileId"] = hashlib.sha256(_VECTOR_PATH.encode()).hexdigest()
            changed = {"storageType": "p", "pathOrInlineDv": f"https://0/{_VECTOR_PATH}"}
            members["deletionVector"] |= changed
    return {"file": {**file, "deltaSingleAction": {action: members}}}


def naive_members(row, names):
    return {name: row[name] for name in names if row[name] is not None}


def naive_at(version):
    return {} if version is None else {"version": version, "timestamp": version + 1}
