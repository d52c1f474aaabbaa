"""What official clients insist on, each as a case of its own: what they send, and what they fail on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.demo.schema import Field, schema_string
from gateway.errors import Unsupported
from gateway.services.snapshot.answer.head import render_head, render_metadata, render_protocol
from gateway.services.snapshot.answer.line import ActionKind
from gateway.services.snapshot.answer.negotiation import choose_format
from gateway.services.snapshot.answer.order import page_rows
from gateway.services.snapshot.answer.page import render_files
from gateway.services.snapshot.log.protocol import Protocol
from gateway.v1 import snapshot_pb2 as pb
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.answer.pages import (
    DELTA,
    PARQUET,
    many,
    no_lines,
    render_rows,
    rows_of,
    seen,
    seen_actions,
    seen_files,
    snapshot_of,
    splice,
)

_FORMATS = pytest.mark.parametrize("line", [PARQUET, DELTA], ids=["parquet", "delta"])
_SEPARATORS = "\u2028\u0085\u2029\x0b\x0c\x1c\x1e"

PYTHON_FEATURES = ("deletionvectors", "columnmapping", "timestampntz")
PYTHON_RESOLVES = pb.ReaderCapabilities(
    response_formats=[pb.RESPONSE_FORMAT_DELTA, pb.RESPONSE_FORMAT_PARQUET], reader_features=PYTHON_FEATURES
)
PYTHON_SNAPSHOT = pb.ReaderCapabilities(
    response_formats=[pb.RESPONSE_FORMAT_DELTA], reader_features=PYTHON_FEATURES
)
PYTHON_CHANGES = pb.ReaderCapabilities(
    response_formats=[pb.RESPONSE_FORMAT_DELTA], reader_features=["deletionvectors", "columnmapping"]
)
SPARK_RESOLVES = pb.ReaderCapabilities(
    response_formats=[pb.RESPONSE_FORMAT_PARQUET, pb.RESPONSE_FORMAT_DELTA],
    reader_features=[*PYTHON_FEATURES, "typewidening-preview", "typewidening"],
)
NO_HEADER = pb.ReaderCapabilities()

INLINE = {"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 1}
IN_FILE = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 1,
    "sizeInBytes": 40,
    "cardinality": 6,
}


def table(*features: str, **fields):
    protocol = Protocol(
        min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
    )
    return snapshot_of({"path": "a", "size": 9}, protocol=protocol, **fields)


MAPPED = table("columnMapping", configuration={"delta.columnMapping.mode": "name"})
WITHOUT_ZONE = table("timestampNtz", schema=schema_string([Field("a", "timestamp_ntz")]))


def choose(snapshot, capabilities, *, discovery=False):
    return choose_format(snapshot, capabilities, GRANT, discovery=discovery)


def head(snapshot, line, **options):
    return render_head(snapshot, GRANT, line.response_format, with_version=False, **options)


# The Python connector.


def test_python_resolving_gets_parquet_for_a_plain_table_and_delta_for_another():
    assert choose(snapshot_of(), PYTHON_RESOLVES, discovery=True) == pb.RESPONSE_FORMAT_PARQUET
    assert choose(MAPPED, PYTHON_RESOLVES, discovery=True) == pb.RESPONSE_FORMAT_DELTA


def test_python_without_a_header_gets_parquet():
    assert choose(snapshot_of(), NO_HEADER) == pb.RESPONSE_FORMAT_PARQUET


def test_python_reading_a_snapshot_in_delta_gets_delta_even_of_a_plain_table():
    assert choose(snapshot_of(), PYTHON_SNAPSHOT) == pb.RESPONSE_FORMAT_DELTA


def test_python_reading_changes_declares_no_timestamps_without_zone_and_is_served_where_none_are_in_use():
    listed = table("timestampNtz", "deletionVectors")

    assert choose(listed, PYTHON_CHANGES) == pb.RESPONSE_FORMAT_DELTA
    with pytest.raises(Unsupported, match="uses timestampNtz"):
        choose(WITHOUT_ZONE, PYTHON_CHANGES)


def test_python_learns_from_the_metadata_what_it_would_have_to_declare():
    wide = json.dumps(
        {"type": "struct", "fields": [{"name": "a", "type": "long", "metadata": {"delta.typeChanges": []}}]}
    )
    widened = table("typeWidening", "vacuumProtocolCheck", schema=wide)

    assert choose(widened, PYTHON_RESOLVES, discovery=True) == pb.RESPONSE_FORMAT_DELTA
    told = json.loads(head(widened, DELTA, declared=PYTHON_FEATURES).splitlines()[0])
    assert told["protocol"]["deltaProtocol"]["readerFeatures"] == ["typeWidening"]
    with pytest.raises(Unsupported, match=r"readerfeatures=typewidening$"):
        choose(widened, PYTHON_SNAPSHOT)


@_FORMATS
def test_python_fails_on_a_blank_line_and_there_is_none(line):
    lines = head(snapshot_of(), line) + b"".join(
        map(splice, render_files(many(3), line, GRANT, rendered=no_lines()))
    )

    assert lines.endswith(b"}\n")
    assert all(lines.decode().splitlines())
    assert lines.count(b"\n") == 5


@_FORMATS
def test_python_splits_at_separators_of_all_scripts_and_none_is_raw(line):
    row = {
        "path": "a",
        "partitionValues": {f"p{_SEPARATORS}": _SEPARATORS},
        "stats": _SEPARATORS,
        "tags": {"t": _SEPARATORS},
        "clusteringProvider": _SEPARATORS,
    }
    described = snapshot_of(name=_SEPARATORS, description=_SEPARATORS, configuration={"a": _SEPARATORS})

    page = render_rows(rows_of(row), ActionKind.FILE, line, GRANT)

    assert (head(described, line) + page.lines).isascii()
    assert len(head(described, line).decode().splitlines()) == 2
    assert len(seen(page)) == 1


def test_pythons_kernel_needs_four_fields_of_every_add():
    row: dict[str, Any] = {"path": "a", "modificationTime": None, "dataChange": None, "partitionValues": {}}

    [action] = seen_actions(render_rows(rows_of(row), ActionKind.FILE, DELTA, GRANT))

    assert {"size", "modificationTime", "dataChange", "partitionValues"} <= set(action)
    assert None not in action.values()


def test_pythons_kernel_refuses_an_empty_list_of_features_below_version_3_and_there_is_none():
    plain = Protocol(min_reader_version=1, min_writer_version=2, reader_features=(), writer_features=())

    assert b"Features" not in render_protocol(plain, DELTA.response_format)


@pytest.mark.parametrize("feature", ["catalogManaged", "somethingNew"])
def test_pythons_kernel_refuses_unknown_features_and_so_do_we_by_name(feature):
    with pytest.raises(Unsupported, match=feature):
        choose(table(feature), PYTHON_SNAPSHOT)


def test_pythons_kernel_passes_v2_checkpoints_and_so_do_we():
    assert choose(table("v2Checkpoint"), PYTHON_SNAPSHOT) == pb.RESPONSE_FORMAT_DELTA
    assert choose(table("v2Checkpoint"), NO_HEADER) == pb.RESPONSE_FORMAT_PARQUET


def test_python_reads_deletion_vectors_in_files_by_url_and_inline_ones_as_they_are():
    rows = rows_of({"path": "a", "deletionVector": IN_FILE}, {"path": "b", "deletionVector": INLINE})

    vectors = [
        action["deletionVector"] for action in seen_actions(render_rows(rows, ActionKind.FILE, DELTA, GRANT))
    ]

    assert [vector["storageType"] for vector in vectors] == ["p", "i"]
    assert vectors[0]["pathOrInlineDv"].startswith("https://")
    assert vectors[1] == INLINE


def test_python_reading_changes_needs_the_writer_version_of_the_table():
    fed = Protocol(min_reader_version=1, min_writer_version=4)
    listed = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("changeDataFeed",))

    assert b'"minWriterVersion":4' in render_protocol(fed, DELTA.response_format)
    assert b'"writerFeatures":["changeDataFeed"]' in render_protocol(listed, DELTA.response_format)


def test_python_reading_changes_needs_versions_and_timestamps():
    line = replace(DELTA, version=4, timestamp=5)

    metadata = render_metadata(snapshot_of().metadata, GRANT, DELTA.response_format, version=4)
    [file] = seen_files(render_rows(rows_of({"path": "a"}), ActionKind.ADD, line, GRANT))

    assert json.loads(metadata)["metaData"]["version"] == 4
    assert (file["version"], file["timestamp"]) == (4, 5)


def test_pythons_kernel_looks_for_timestamps_in_commits_when_the_table_says_so_and_is_not_told():
    stamped = snapshot_of(configuration={"delta.enableInCommitTimestamps": "true"})

    assert b"InCommitTimestamps" not in head(stamped, DELTA)


def test_pythons_kernel_needs_the_options_of_the_file_format():
    assert b'"format":{"provider":"parquet","options":{}}' in head(snapshot_of(), DELTA)


def test_python_passes_over_what_the_metadata_has_beyond_its_own_fields():
    fields = json.loads(head(snapshot_of(), PARQUET).splitlines()[1])["metaData"]

    assert {"location", "accessModes", "size", "numFiles"} < set(fields)


# Spark.


def test_spark_spells_features_in_camel_case():
    assert choose(MAPPED, SPARK_RESOLVES) == pb.RESPONSE_FORMAT_DELTA
    assert choose(WITHOUT_ZONE, SPARK_RESOLVES) == pb.RESPONSE_FORMAT_DELTA
    assert choose(snapshot_of(), SPARK_RESOLVES) == pb.RESPONSE_FORMAT_PARQUET


@_FORMATS
def test_spark_needs_exactly_two_lines_of_metadata(line):
    assert len(head(snapshot_of(), line).splitlines()) == 2


@_FORMATS
def test_spark_needs_the_size_of_the_table(line):
    assert json.loads(head(table(), line).splitlines()[1])["metaData"]["size"] == 9


@pytest.mark.parametrize("features", [(), ("v2Checkpoint",), ("deletionVectors", "columnMapping")])
def test_spark_reads_parquet_up_to_version_2_and_gets_1_of_a_table_whose_features_are_not_in_use(features):
    downgraded = table(*features)

    assert choose(downgraded, SPARK_RESOLVES) == pb.RESPONSE_FORMAT_PARQUET
    assert head(downgraded, PARQUET).splitlines()[0] == b'{"protocol":{"minReaderVersion":1}}'


@_FORMATS
def test_spark_compares_the_lines_of_metadata_and_query_and_they_are_the_same_bytes(line):
    schema = '{"type" : "struct","fields":[ ]}'
    described = table("deletionVectors", schema=schema, configuration={"z": "1", "a": "2"})

    assert head(described, line) == head(described, line)
    assert json.dumps(schema).encode() in head(described, line)


@_FORMATS
@pytest.mark.parametrize("kind", [ActionKind.ADD, ActionKind.REMOVE, ActionKind.CDF])
def test_spark_needs_version_timestamp_and_size_of_every_change(line, kind):
    at = replace(line, version=4, timestamp=5)

    [change] = seen(render_rows(rows_of({"path": "a", "size": 8}, kind=kind), kind, at, GRANT))

    file = next(iter(change.values()))
    action = next(iter(file["deltaSingleAction"].values())) if line is DELTA else file
    assert (file["version"], file["timestamp"], action["size"]) == (4, 5, 8)


def test_spark_fails_on_change_data_with_a_deletion_vector_and_there_is_none():
    rows = rows_of({"path": "a"}, kind=ActionKind.CDF)

    [action] = seen_actions(render_rows(rows, ActionKind.CDF, DELTA, GRANT))

    assert "deletionVector" not in action


@pytest.mark.parametrize("kind", [ActionKind.FILE, ActionKind.ADD, ActionKind.REMOVE])
def test_spark_needs_the_id_of_a_file_with_deletion_vectors_and_takes_no_relative_one(kind):
    row = {"path": "a", "deletionVector": IN_FILE}

    [file] = seen_files(render_rows(rows_of(row, kind=kind), kind, DELTA, GRANT))

    action = next(iter(file["deltaSingleAction"].values()))
    assert len(file["deletionVectorFileId"]) == 64
    assert action["deletionVector"]["storageType"] == "p"


@_FORMATS
def test_spark_refreshes_urls_by_ids_which_are_those_of_the_first_answer(line):
    files = many(5)

    first = seen_files(*render_files(files, line, GRANT, rendered=no_lines()))
    again = seen_files(*render_files(files, line, GRANT, limit=10**6, rendered=no_lines()))

    assert [file["id"] for file in first] == [file["id"] for file in again]


@_FORMATS
def test_spark_reading_page_by_page_gets_each_file_once(line):
    files = many(7)
    first, after = page_rows(files, None, None, 4)
    second, end = page_rows(files, None, after, 4)

    ids = [
        file["id"]
        for rows in (first, second)
        for file in seen_files(render_rows(rows, ActionKind.FILE, line, GRANT))
    ]

    assert end is None
    assert sorted(ids) == sorted(
        file["id"] for file in seen_files(*render_files(files, line, GRANT, rendered=no_lines()))
    )


def test_spark_casts_partition_values_and_gets_null_as_null():
    row = {"path": "a", "partitionValues": {"number": None}}

    [file] = seen_files(render_rows(rows_of(row), ActionKind.FILE, PARQUET, GRANT))

    assert file["partitionValues"] == {"number": None}
