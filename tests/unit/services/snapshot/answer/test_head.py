from __future__ import annotations

import json
from dataclasses import replace

import polars as pl

from gateway.domain.table import AccessMode
from gateway.ports import LogFile
from gateway.services.snapshot.answer.head import render_head
from gateway.services.snapshot.log.actions import FILES
from gateway.services.snapshot.state.snapshot import Metadata, Protocol, Snapshot
from tests.builders import STARTED_AT
from tests.fakes.grants import GRANT

_SCHEMA = '{"type":"struct",  "fields":[{"name":"größe","type":"long","metadata":{"comment":"a\u2028b"}}]}'


def snapshot(**metadata):
    rows = [
        {"path": path, "encoded": path, "partitionValues": {}, "size": size, "hasDeletionVector": False}
        for path, size in (("a", 5), ("b", 7))
    ]
    return Snapshot(
        version=3,
        protocol=Protocol(min_reader_version=3, reader_features=("v2Checkpoint",)),
        metadata=Metadata(id="t", schema_string=_SCHEMA, **metadata),
        files=pl.DataFrame(rows, schema=FILES),
        size=12,
        anchor=LogFile("anchor", 1, STARTED_AT),
    )


def metadata_of(lines: bytes):
    return json.loads(lines.splitlines()[1])["metaData"]


def test_the_protocol_is_that_of_the_parquet_format_whatever_the_table_has():
    lines = render_head(snapshot(), GRANT, with_version=False)

    assert lines.splitlines()[0] == b'{"protocol":{"minReaderVersion":1}}'


def test_there_are_two_lines_of_ascii():
    lines = render_head(snapshot(name="Größe\u2028"), GRANT, with_version=False)

    assert lines.isascii()
    assert lines.count(b"\n") == len(lines.decode().splitlines()) == 2
    assert lines.endswith(b"}\n")


def test_all_fields_that_there_are_stand_in_the_metadata():
    table = snapshot(
        name="orders", description="all of them", partition_columns=("day",), configuration={"a": "b"}
    )

    fields = metadata_of(render_head(table, GRANT, with_version=True))

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


def test_what_there_is_not_is_left_out():
    grant = replace(GRANT, auxiliary_locations=(), access_modes=(AccessMode.URL, AccessMode.DIR))

    fields = metadata_of(render_head(snapshot(), grant, with_version=False))

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


def test_the_lines_of_a_version_are_always_the_same_bytes():
    first = render_head(snapshot(configuration={"b": "1", "a": "2"}), GRANT, with_version=False)
    second = render_head(snapshot(configuration={"b": "1", "a": "2"}), GRANT, with_version=False)

    assert first == second
