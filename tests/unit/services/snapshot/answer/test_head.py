from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.domain.table import AccessMode
from gateway.services.snapshot.answer.head import render_head, render_metadata, render_protocol
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.v1.snapshot_pb2 import RESPONSE_FORMAT_DELTA, RESPONSE_FORMAT_PARQUET
from tests.cases import each_case
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.answer.pages import snapshot_of

_FORMATS = pytest.mark.parametrize("response_format", [RESPONSE_FORMAT_PARQUET, RESPONSE_FORMAT_DELTA])
_SCHEMA = '{"type":"struct",  "fields":[{"name":"größe","type":"long","metadata":{"comment":"a\u2028b"}}]}'
_V2 = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("v2Checkpoint",),
    writer_features=("v2Checkpoint", "rowTracking"),
)


def snapshot(protocol: Protocol = _V2, **metadata):
    rows = [{"path": "a", "size": 5}, {"path": "b", "size": 7}]
    return snapshot_of(*rows, protocol=protocol, schema=_SCHEMA, **metadata)


def protocol_of(lines: bytes):
    return json.loads(lines.splitlines()[0])["protocol"]


def metadata_of(lines: bytes):
    return json.loads(lines.splitlines()[1])["metaData"]


def test_the_protocol_is_that_of_the_parquet_format_whatever_the_table_has():
    lines = render_head(snapshot(), GRANT, RESPONSE_FORMAT_PARQUET, with_version=False)

    assert lines.splitlines()[0] == b'{"protocol":{"minReaderVersion":1}}'


def test_in_the_delta_format_the_protocol_is_that_of_the_table():
    lines = render_head(snapshot(), GRANT, RESPONSE_FORMAT_DELTA, with_version=False)

    assert protocol_of(lines) == {
        "deltaProtocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint", "rowTracking"],
        }
    }


@each_case(
    ("protocol", "fields"),
    [
        (
            Protocol(min_reader_version=1, min_writer_version=4, reader_features=(), writer_features=()),
            {"minReaderVersion": 1, "minWriterVersion": 4},
        ),
        (
            Protocol(min_reader_version=2, min_writer_version=5),
            {"minReaderVersion": 2, "minWriterVersion": 5},
        ),
        (
            Protocol(min_reader_version=1, min_writer_version=7, writer_features=("rowTracking",)),
            {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]},
        ),
        (
            Protocol(min_reader_version=3, min_writer_version=7),
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []},
        ),
    ],
)
def test_a_list_of_features_is_there_when_the_version_calls_for_one_and_only_then(protocol, fields):
    line = json.loads(render_protocol(protocol, RESPONSE_FORMAT_DELTA))

    assert line == {"protocol": {"deltaProtocol": fields}}


def test_the_version_of_a_protocol_is_told_in_the_delta_format_when_it_is_asked_for():
    asked = json.loads(render_protocol(_V2, RESPONSE_FORMAT_DELTA, 9))["protocol"]
    unasked = json.loads(render_protocol(_V2, RESPONSE_FORMAT_DELTA))["protocol"]
    parquet = json.loads(render_protocol(_V2, RESPONSE_FORMAT_PARQUET, 9))["protocol"]

    assert asked == {**unasked, "version": 9}
    assert "version" not in unasked
    assert parquet == {"minReaderVersion": 1}


@_FORMATS
def test_there_are_two_lines_of_ascii(response_format):
    lines = render_head(snapshot(name="Größe\u2028"), GRANT, response_format, with_version=False)

    assert lines.isascii()
    assert lines.count(b"\n") == len(lines.decode().splitlines()) == 2
    assert lines.endswith(b"}\n")


def test_all_fields_that_there_are_stand_in_the_metadata():
    table = snapshot(
        name="orders", description="all of them", partition_columns=("day",), configuration={"a": "b"}
    )

    fields = metadata_of(render_head(table, GRANT, RESPONSE_FORMAT_PARQUET, with_version=True))

    assert fields == {
        "id": "t",
        "name": "orders",
        "description": "all of them",
        "format": {"provider": "parquet"},
        "schemaString": _SCHEMA,
        "partitionColumns": ["day"],
        "configuration": {"a": "b"},
        "location": "s3://lake/sales/orders",
        "auxiliaryLocations": ["s3://archive/orders"],
        "accessModes": ["url"],
        "version": 3,
        "size": 12,
        "numFiles": 2,
    }


def test_in_the_delta_format_the_metadata_of_the_log_is_wrapped():
    table = snapshot(
        name="orders",
        description="all of them",
        partition_columns=("day",),
        configuration={"a": "b"},
        format_options={"c": "d"},
        created_time=7,
    )

    fields = metadata_of(render_head(table, GRANT, RESPONSE_FORMAT_DELTA, with_version=True))

    assert fields == {
        "deltaMetadata": {
            "id": "t",
            "name": "orders",
            "description": "all of them",
            "format": {"provider": "parquet", "options": {"c": "d"}},
            "schemaString": _SCHEMA,
            "partitionColumns": ["day"],
            "configuration": {"a": "b"},
            "createdTime": 7,
        },
        "location": "s3://lake/sales/orders",
        "auxiliaryLocations": ["s3://archive/orders"],
        "accessModes": ["url"],
        "version": 3,
        "size": 12,
        "numFiles": 2,
    }


def test_what_there_is_not_is_left_out():
    grant = replace(GRANT, auxiliary_locations=(), access_modes=(AccessMode.URL, AccessMode.DIR))

    fields = metadata_of(render_head(snapshot(), grant, RESPONSE_FORMAT_PARQUET, with_version=False))
    delta = metadata_of(render_head(snapshot(), grant, RESPONSE_FORMAT_DELTA, with_version=False))

    assert set(fields) == {
        "id",
        "format",
        "schemaString",
        "partitionColumns",
        "configuration",
        "location",
        "accessModes",
        "size",
        "numFiles",
    }
    assert fields["partitionColumns"] == []
    assert fields["configuration"] == {}
    assert fields["accessModes"] == ["url", "dir"]
    assert set(delta) == {"deltaMetadata", "location", "accessModes", "size", "numFiles"}
    assert delta["deltaMetadata"]["format"] == {"provider": "parquet", "options": {}}
    assert "createdTime" not in delta["deltaMetadata"]


def test_metadata_of_another_version_has_neither_size_nor_number_of_files():
    line = render_metadata(Metadata(id="t", schema_string="{}"), GRANT, RESPONSE_FORMAT_DELTA, version=5)

    fields = json.loads(line)["metaData"]
    assert fields["version"] == 5
    assert not {"size", "numFiles"} & set(fields)


def test_a_client_is_not_sent_to_look_for_timestamps_in_commits_that_it_has_not_got():
    properties = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "3",
        "delta.inCommitTimestampEnablementTimestamp": "4",
        "delta.enableChangeDataFeed": "true",
    }
    table = snapshot(configuration=properties)

    delta = metadata_of(render_head(table, GRANT, RESPONSE_FORMAT_DELTA, with_version=False))
    parquet = metadata_of(render_head(table, GRANT, RESPONSE_FORMAT_PARQUET, with_version=False))

    assert delta["deltaMetadata"]["configuration"] == {"delta.enableChangeDataFeed": "true"}
    assert parquet["configuration"] == properties


@_FORMATS
def test_the_lines_of_a_version_are_always_the_same_bytes(response_format):
    first = render_head(
        snapshot(configuration={"b": "1", "a": "2"}), GRANT, response_format, with_version=False
    )
    second = render_head(
        snapshot(configuration={"b": "1", "a": "2"}), GRANT, response_format, with_version=False
    )

    assert first == second


def test_what_the_client_declares_decides_which_unused_features_it_is_told():
    protocol = replace(_V2, reader_features=("timestampNtz",), writer_features=("timestampNtz",))
    table = snapshot(protocol)

    told = render_head(table, GRANT, RESPONSE_FORMAT_DELTA, with_version=False, declared=["timestampntz"])
    untold = render_head(table, GRANT, RESPONSE_FORMAT_DELTA, with_version=False)

    assert protocol_of(told)["deltaProtocol"]["readerFeatures"] == ["timestampNtz"]
    assert protocol_of(untold)["deltaProtocol"] == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [],
        "writerFeatures": [],
    }
