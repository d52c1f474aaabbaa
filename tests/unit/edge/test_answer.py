from __future__ import annotations

from aiohttp import web

from gateway.edge.answer import (
    json_answer,
    schema_json,
    share_json,
    table_headers,
    table_json,
    version_answer,
)
from gateway.v1.catalog_pb2 import ACCESS_MODE_DIR, ACCESS_MODE_URL, Schema, Share, Table
from gateway.v1.snapshot_pb2 import RESPONSE_FORMAT_PARQUET, TableHead


def body(response: web.Response) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


def test_a_share_has_all_its_fields() -> None:
    share = Share(name="s", id="1", display_name="S", comment="about", properties={"owner": "ann"})
    assert share_json(share) == {
        "name": "s",
        "id": "1",
        "displayName": "S",
        "comment": "about",
        "properties": {"owner": "ann"},
    }


def test_fields_that_are_empty_are_left_out() -> None:
    assert share_json(Share(name="s")) == {"name": "s"}
    assert schema_json(Schema(name="d", share="s")) == {"name": "d", "share": "s"}
    assert table_json(Table(name="t", schema="d", share="s")) == {"name": "t", "schema": "d", "share": "s"}


def test_a_table_has_all_its_fields() -> None:
    table = Table(
        name="t",
        schema="d",
        share="s",
        share_id="1",
        id="2",
        location="s3://b/t",
        auxiliary_locations=["s3://b/x"],
        access_modes=[ACCESS_MODE_URL, ACCESS_MODE_DIR],
    )
    assert table_json(table) == {
        "name": "t",
        "schema": "d",
        "share": "s",
        "shareId": "1",
        "id": "2",
        "location": "s3://b/t",
        "auxiliaryLocations": ["s3://b/x"],
        "accessModes": ["url", "dir"],
    }


def test_an_answer_is_json_that_nobody_keeps() -> None:
    answered = json_answer(b"{}")
    assert body(answered) == b"{}"
    assert answered.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answered.headers["Cache-Control"] == "no-store"


def test_a_version_is_a_header_and_no_body() -> None:
    answered = version_answer(0)
    assert answered.headers["Delta-Table-Version"] == "0"
    assert not answered.body


def test_the_headers_of_a_table() -> None:
    head = TableHead(version=3, response_format=RESPONSE_FORMAT_PARQUET)
    assert table_headers(head, "accessModes=url", end_stream_action=True) == {
        "Content-Type": "application/x-ndjson; charset=utf-8",
        "Delta-Table-Version": "3",
        "delta-sharing-capabilities": "responseformat=parquet;includeendstreamaction=true;accessModes=url",
        "Cache-Control": "no-store",
    }
