from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.domain.audit import AuditKind
from gateway.errors import Unavailable
from gateway.v1.snapshot_pb2 import FILE_ID_HASH_DELTA
from tests.cases import each_case
from tests.fakes.http_connection import Reply
from tests.fakes.services import FAR_MS, FakeTable
from tests.unit.edge.conftest import Edge, make_world, start_edge

STOCK = "/shares/Sales/schemas/eu/tables/stock/changes"
DIRS = "/shares/Sales/schemas/eu/tables/dirs/changes"
ORDERS = "/shares/Sales/schemas/eu/tables/orders/changes"
END = "includeEndStreamAction=true"


@pytest.fixture
async def edge():
    world = make_world()
    stock = FakeTable(
        share="Sales", schema="eu", name="stock", version=5, history_shared=True, change_feed=True
    )
    world.tables = [*world.tables, stock]
    async with start_edge(world=world) as started:
        yield started


def kinds(reply: Reply) -> list[str]:
    assert reply.status == 200, reply.body
    return [next(iter(json.loads(line))) for line in reply.lines]


async def test_the_head_and_then_the_changes_of_each_version(edge: Edge) -> None:
    reply = await edge.get(f"{STOCK}?startingVersion=1&endingVersion=3")
    assert kinds(reply) == ["protocol", "metaData", "add", "add", "cdf", "cdf"]
    assert reply.headers["Delta-Table-Version"] == "1"
    assert reply.headers["delta-sharing-capabilities"] == "responseformat=parquet"
    assert reply.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"


async def test_everything_that_is_asked_for_is_passed_on(edge: Edge) -> None:
    query = (
        "startingVersion=1&endingTimestamp=2026-01-01T00%3A00%3A00Z&includeHistoricalMetadata=True"
        "&includeHistoricalProtocol=false&maxFiles=7&readChangeFeed=true"
    )
    reply = await edge.get(
        f"{STOCK}?{query}", fileidhash="Delta", delta_sharing_capabilities="responseformat=delta"
    )
    (request,) = edge.services.snapshot.requests
    assert (request.start.version, request.end.timestamp) == (1, "2026-01-01T00:00:00Z")
    assert (request.include_historical_metadata, request.include_historical_protocol) == (True, False)
    assert (request.max_files, request.page_token) == (7, "")
    assert request.file_id_hash == FILE_ID_HASH_DELTA
    assert reply.headers["fileidhash"] == "delta"
    assert reply.headers["delta-sharing-capabilities"] == "responseformat=delta"


@each_case(
    ("query", "message"),
    [
        ("", "startingVersion or startingTimestamp"),
        ("endingVersion=1", "startingVersion or startingTimestamp"),
        (
            "startingVersion=1&startingTimestamp=2026-01-01T00:00:00Z",
            "Please only provide one of: startingVersion, startingTimestamp",
        ),
        (
            "startingVersion=1&endingVersion=1&endingTimestamp=2026-01-01T00:00:00Z",
            "Please only provide one of: endingVersion, endingTimestamp",
        ),
        ("startingVersion=-1", "startingVersion must be a whole number"),
        ("startingVersion=one", "startingVersion must be a whole number"),
        ("startingVersion=1&maxFiles=0", "maxFiles must be a whole number from 1"),
        ("startingVersion=1&maxFiles=many", "maxFiles must be a whole number from 1"),
        ("startingTimestamp=", "startingTimestamp must be a timestamp"),
        ("startingVersion=1&includeHistoricalMetadata=maybe", "includeHistoricalMetadata must be true or"),
        ("startingVersion=1&startingVersion=1", "startingVersion must be given only once"),
    ],
)
async def test_a_bad_request_is_refused_and_nothing_is_read(edge: Edge, query: str, message: str) -> None:
    reply = await edge.get(f"{STOCK}?{query}")
    assert reply.status == 400
    body = json.loads(reply.body)
    assert body["errorCode"] == "INVALID_PARAMETER_VALUE"
    assert message in body["message"]
    assert edge.services.snapshot.requests == []


async def test_a_table_of_directories_has_no_urls(edge: Edge) -> None:
    reply = await edge.get(f"{DIRS}?startingVersion=0")
    assert (reply.status, json.loads(reply.body)["errorCode"]) == (400, "UNSUPPORTED_OPERATION")


async def test_the_services_refusal_is_the_answer(edge: Edge) -> None:
    reply = await edge.get(f"{ORDERS}?startingVersion=0")
    assert reply.status == 400
    assert json.loads(reply.body)["message"] == "cdf is not enabled on table Sales.eu.orders"


async def test_metadata_alone_is_not_signed_and_still_on_record(edge: Edge) -> None:
    reply = await edge.get(f"{STOCK}?startingVersion=4&endingVersion=4&includeHistoricalMetadata=true")
    assert kinds(reply) == ["protocol", "metaData"]
    reply = await edge.get(f"{STOCK}?startingVersion=3&endingVersion=4&includeHistoricalMetadata=true")
    assert kinds(reply) == ["protocol", "metaData", "cdf", "metaData"]
    assert len(edge.services.presign.requests) == 1
    assert [event.files for event in edge.audit.appended] == [0, 1]


async def test_the_grant_is_on_record_before_the_first_byte(edge: Edge) -> None:
    await edge.get(f"{STOCK}?startingVersion=1")
    (event,) = edge.audit.appended
    assert (event.kind, event.operation, event.mode) == (AuditKind.GRANT, "queryTableChanges", "url")
    assert (event.table_id, event.version) == ("id-stock", 1)


@pytest.mark.parametrize(
    ("query", "capabilities", "expected"),
    [
        ("", "", None),
        ("&maxFiles=2", "", {"nextPageToken", "minUrlExpirationTimestamp"}),
        ("&maxFiles=200", "", {"minUrlExpirationTimestamp"}),
        ("", END, {"minUrlExpirationTimestamp"}),
    ],
)
async def test_an_end_is_sent_where_it_is_asked_for(
    edge: Edge, query: str, capabilities: str, expected: set[str] | None
) -> None:
    reply = await edge.get(f"{STOCK}?startingVersion=1{query}", delta_sharing_capabilities=capabilities)
    last: dict[str, Any] = json.loads(reply.lines[-1])
    if expected is None:
        assert b"endStreamAction" not in reply.body
    else:
        assert set(last["endStreamAction"]) == expected
        assert last["endStreamAction"]["minUrlExpirationTimestamp"] == FAR_MS
    assert ("includeendstreamaction" in reply.headers["delta-sharing-capabilities"]) == (capabilities == END)


async def test_a_failure_on_the_way_never_looks_like_the_end(edge: Edge) -> None:
    edge.services.snapshot.fail_after = 1
    reply = await edge.get(f"{STOCK}?startingVersion=0")
    assert reply.status == 200
    assert not reply.complete


async def test_a_failure_on_the_way_is_in_the_last_line_where_one_was_asked_for(edge: Edge) -> None:
    edge.services.snapshot.fail_after = 1
    edge.services.snapshot.error = Unavailable("the storage does not answer")
    reply = await edge.get(f"{STOCK}?startingVersion=0", delta_sharing_capabilities=END)
    assert json.loads(reply.lines[-1]) == {
        "endStreamAction": {"errorMessage": "the storage does not answer", "httpStatusErrorCode": 503}
    }
