from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.audit import AuditKind
from gateway.edge.signing import moment
from gateway.errors import Unauthenticated, Unavailable
from gateway.v1.catalog_pb2 import AUDIENCE_PRESIGN, AUDIENCE_SNAPSHOT
from gateway.v1.snapshot_pb2 import FILE_ID_HASH_DELTA, FILE_ID_HASH_UNSPECIFIED
from tests.cases import each_case
from tests.fakes.http_connection import Reply
from tests.fakes.services import FAR_MS, FILE_SIZE, expected_url
from tests.http import FINAL_CHUNK
from tests.unit.edge.conftest import AUTH, BASE, Edge, start_edge

ORDERS = "/shares/Sales/schemas/eu/tables/orders/query"
EMPTY = "/shares/Sales/schemas/eu/tables/empty/query"
HISTORY = "/shares/Sales/schemas/us/tables/history/query"
END = "includeEndStreamAction=true"


async def test_the_head_and_then_a_line_for_each_file(edge: Edge) -> None:
    reply = await edge.post(ORDERS)
    assert reply.status == 200
    assert reply.complete
    lines = [json.loads(line) for line in reply.lines]
    assert [list(line) for line in lines] == [["protocol"], ["metaData"]] + [["file"]] * 8
    assert [line["file"]["url"] for line in lines[2:]] == [
        expected_url(f"part-{number:05}.parquet") for number in range(8)
    ]
    assert {line["file"]["expirationTimestamp"] for line in lines[2:]} == {FAR_MS}


async def test_the_headers_of_an_answer(edge: Edge) -> None:
    reply = await edge.post(ORDERS)
    assert reply.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"
    assert reply.headers["Delta-Table-Version"] == "7"
    assert reply.headers["delta-sharing-capabilities"] == "responseformat=parquet"
    assert reply.headers["Cache-Control"] == "no-store"
    assert "fileidhash" not in reply.headers


async def test_the_head_is_the_same_as_in_metadata(edge: Edge) -> None:
    metadata = await edge.get(ORDERS.replace("/query", "/metadata"))
    assert (await edge.post(ORDERS)).lines[:2] == metadata.lines


async def test_the_lines_end_with_a_newline_and_no_blank_line(edge: Edge) -> None:
    body = (await edge.post(ORDERS)).body
    assert body.endswith(b"}\n")
    assert b"\n\n" not in body


async def test_a_table_without_files_is_two_lines_and_nothing_is_signed(edge: Edge) -> None:
    assert len((await edge.post(EMPTY)).lines) == 2
    assert edge.services.presign.requests == []


async def test_one_resolve_grants_both_services(edge: Edge) -> None:
    await edge.post(ORDERS)
    (request,) = edge.services.catalog.requests
    assert list(request.audiences) == [AUDIENCE_SNAPSHOT, AUDIENCE_PRESIGN]


async def test_pages_are_signed_one_by_one(edge: Edge) -> None:
    await edge.post(ORDERS)
    assert [len(request.paths.split(b"\n")) for request in edge.services.presign.requests] == [3, 3, 2]


async def test_what_the_body_asks_for_is_passed_on(edge: Edge) -> None:
    body = {"predicateHints": ["n = 1", "n > 0"], "jsonPredicateHints": "{}", "limitHint": 2, "version": 5}
    reply = await edge.post(HISTORY, json.dumps(body).encode(), fileidhash="Delta")
    (request,) = edge.services.snapshot.requests
    assert list(request.predicate_hints) == ["n = 1", "n > 0"]
    assert (request.json_predicate_hints, request.limit_hint, request.at.version) == ("{}", 2, 5)
    assert request.file_id_hash == FILE_ID_HASH_DELTA
    assert reply.headers["fileidhash"] == "delta"
    assert reply.headers["Delta-Table-Version"] == "5"


async def test_nothing_in_the_body_is_nothing_asked_for(edge: Edge) -> None:
    await edge.server.post(BASE + ORDERS, AUTH)
    (request,) = edge.services.snapshot.requests
    assert not request.HasField("limit_hint")
    assert request.at.WhichOneof("at") is None
    assert request.file_id_hash == FILE_ID_HASH_UNSPECIFIED


@each_case(
    ("body", "headers", "status", "code"),
    [
        (b"null", {}, 400, "MALFORMED_REQUEST"),
        (b"{", {}, 400, "MALFORMED_REQUEST"),
        (b'{"version":1,"timestamp":"2022-01-01T00:00:00Z"}', {}, 400, "INVALID_PARAMETER_VALUE"),
        (b'{"version":1,"startingVersion":1}', {}, 400, "INVALID_PARAMETER_VALUE"),
        (b'{"maxFiles":0}', {}, 400, "INVALID_PARAMETER_VALUE"),
        (b'{"pageToken":1}', {}, 400, "MALFORMED_REQUEST"),
        (b'{"refreshToken":{}}', {}, 400, "MALFORMED_REQUEST"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "MALFORMED_REQUEST"),
        (b"{}", {"fileidhash": "md5"}, 400, "INVALID_PARAMETER_VALUE"),
        (b" " * 2000, {}, 413, "MALFORMED_REQUEST"),
        (b"{}", {"Content-Encoding": "gzip"}, 415, "MALFORMED_REQUEST"),
    ],
)
async def test_a_bad_request_is_refused_with_its_code(
    body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    async with start_edge(body_limit=1000) as edge:
        reply = await edge.post(ORDERS, body, **headers)
    assert reply.status == status
    assert json.loads(reply.body)["errorCode"] == code
    assert edge.services.snapshot.requests == []


async def test_a_body_that_grows_beyond_the_limit_is_413() -> None:
    async with start_edge(body_limit=1000) as edge:
        connection = edge.server.connect()
        head = f"POST {BASE}{ORDERS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-of-ann\r\n"
        connection.send(f"{head}Transfer-Encoding: chunked\r\n\r\n7d0\r\n".encode() + b" " * 2000)
        assert (await connection.reply()).status == 413


async def test_a_body_that_does_not_arrive_is_408() -> None:
    async with start_edge(body_timeout=timedelta(milliseconds=5)) as edge:
        connection = edge.server.connect()
        head = f"POST {BASE}{ORDERS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-of-ann\r\n"
        connection.send(f"{head}Content-Length: 10\r\n\r\n{{".encode())
        assert (await connection.reply()).status == 408


async def test_an_end_that_was_asked_for_tells_when_the_first_url_expires(edge: Edge) -> None:
    edge.services.presign.step_ms = 1000
    reply = await edge.post(ORDERS, delta_sharing_capabilities=END)
    assert reply.headers["delta-sharing-capabilities"] == "responseformat=parquet;includeendstreamaction=true"
    assert json.loads(reply.lines[-1]) == {"endStreamAction": {"minUrlExpirationTimestamp": FAR_MS}}


async def test_the_end_of_an_empty_table_has_nothing_to_expire(edge: Edge) -> None:
    reply = await edge.post(EMPTY, delta_sharing_capabilities=END)
    assert json.loads(reply.lines[-1]) == {"endStreamAction": {}}


@pytest.mark.parametrize("body", [{}, {"limitHint": 1}, {"includeRefreshToken": False}, {"pageToken": ""}])
async def test_an_end_that_was_not_asked_for_is_not_sent(edge: Edge, body: dict[str, Any]) -> None:
    reply = await edge.post(ORDERS, json.dumps(body).encode())
    assert b"endStreamAction" not in reply.body


async def test_a_refresh_token_alone_brings_no_end(edge: Edge) -> None:
    token = end_of(await edge.post(ORDERS, b'{"includeRefreshToken": true}'))["refreshToken"]
    reply = await edge.post(ORDERS, json.dumps({"refreshToken": token}).encode())
    assert (reply.status, len(reply.lines)) == (200, 10)
    assert b"endStreamAction" not in reply.body


async def test_an_end_that_comes_along_is_not_in_the_capabilities(edge: Edge) -> None:
    reply = await edge.post(ORDERS, b'{"includeRefreshToken": true}')
    assert set(end_of(reply)) == {"refreshToken", "minUrlExpirationTimestamp"}
    assert reply.headers["delta-sharing-capabilities"] == "responseformat=parquet"


async def test_pages_lead_from_one_to_the_next(edge: Edge) -> None:
    urls: list[str] = []
    body: dict[str, Any] = {"maxFiles": 5}
    for count in (5, 3):
        reply = await edge.post(ORDERS, json.dumps(body).encode())
        found = [json.loads(line)["file"]["url"] for line in reply.lines[2:-1]]
        assert len(found) == count
        urls += found
        body["pageToken"] = end_of(reply).get("nextPageToken")
    assert body["pageToken"] is None
    assert urls == [expected_url(f"part-{number:05}.parquet") for number in range(8)]


async def test_a_failure_on_the_way_is_no_last_line_to_a_client_that_only_pages(edge: Edge) -> None:
    edge.services.snapshot.fail_after = 1
    reply = await edge.post(ORDERS, b'{"includeRefreshToken": true, "maxFiles": 8}')
    assert not reply.complete
    assert b"endStreamAction" not in reply.body


async def test_hints_are_answered_with_what_became_of_them(edge: Edge) -> None:
    body = {"predicateHints": ["n = 1", "nonsense("], "jsonPredicateHints": "{"}
    reply = await edge.post(ORDERS, json.dumps(body).encode())
    assert reply.headers["sluice-predicate-hints"] == "used=1, skipped=2"


@pytest.mark.parametrize("body", [{}, {"predicateHints": []}, {"jsonPredicateHints": ""}, {"limitHint": 1}])
async def test_without_hints_there_is_nothing_to_tell_of_them(edge: Edge, body: dict[str, Any]) -> None:
    reply = await edge.post(ORDERS, json.dumps(body).encode())
    assert "sluice-predicate-hints" not in reply.headers


async def test_everything_about_versions_and_pages_is_passed_on(edge: Edge) -> None:
    await edge.post(
        HISTORY,
        b'{"startingVersion":0,"endingVersion":3,"includeHistoricalProtocol":true,"maxFiles":9,"pageToken":"x"}',
    )
    (request,) = edge.services.snapshot.requests
    assert (request.starting_version, request.ending_version, request.max_files) == (0, 3, 9)
    assert (request.include_historical_protocol, request.page_token) == (True, "x")


async def test_an_ending_version_without_a_starting_one_means_nothing(edge: Edge) -> None:
    assert (await edge.post(ORDERS, b'{"endingVersion":3}')).status == 200
    assert not edge.services.snapshot.requests[0].HasField("ending_version")


def end_of(reply: Reply) -> dict[str, Any]:
    return dict(json.loads(reply.lines[-1])["endStreamAction"])


@pytest.mark.parametrize("capabilities", ["", END])
async def test_a_failure_before_the_first_byte_is_an_error_body(edge: Edge, capabilities: str) -> None:
    edge.services.presign.error = Unavailable("the storage does not answer")
    reply = await edge.post(ORDERS, delta_sharing_capabilities=capabilities)
    assert reply.status == 503
    assert json.loads(reply.body)["message"] == "the storage does not answer"
    assert edge.audit.appended == []
    assert edge.services.snapshot.closed == 1


async def test_a_refused_grant_is_not_the_clients_401(edge: Edge) -> None:
    edge.services.presign.error = Unauthenticated("the grant has expired")
    assert (await edge.post(ORDERS)).status == 503


async def test_a_failure_on_the_way_never_looks_like_the_end(edge: Edge) -> None:
    edge.services.snapshot.fail_after = 2
    connection = edge.server.connect()
    reply = await connection.request("POST", BASE + ORDERS, AUTH)
    assert reply.status == 200
    assert not reply.complete
    assert connection.transport.aborted
    assert FINAL_CHUNK not in connection.transport.output
    assert (await edge.settled()).outcome == "INTERNAL_ERROR"
    assert edge.metrics.requests[0][2] == 500


async def test_a_failure_on_the_way_is_in_the_last_line_where_one_was_asked_for(edge: Edge) -> None:
    edge.services.snapshot.fail_after = 1
    edge.services.snapshot.error = Unavailable("the storage does not answer")
    reply = await edge.post(ORDERS, delta_sharing_capabilities=END)
    assert reply.status == 200
    assert reply.complete
    assert json.loads(reply.lines[-1]) == {
        "endStreamAction": {"errorMessage": "the storage does not answer", "httpStatusErrorCode": 503}
    }
    assert (await edge.settled()).outcome == "TEMPORARILY_UNAVAILABLE"
    assert edge.metrics.requests[0][2] == 503


async def test_the_grant_is_on_record_before_the_first_byte(edge: Edge) -> None:
    edge.services.snapshot.gate = asyncio.Semaphore(1)
    connection = edge.server.connect()
    waiting = asyncio.create_task(connection.request("POST", BASE + ORDERS, AUTH | {"User-Agent": "spark"}))
    await connection.wait_for_output(b"part-00002")
    (event,) = edge.audit.appended
    assert edge.audit.noted == []
    edge.services.snapshot.gate.release()
    edge.services.snapshot.gate.release()
    await waiting
    assert event.kind is AuditKind.GRANT
    assert (event.operation, event.outcome, event.principal) == ("queryTable", "OK", "ann")
    assert (event.table, event.table_id, event.version, event.mode) == ("orders", "id-orders", 7, "url")
    assert event.locations == ("s3://bucket/orders",)
    assert event.expires_at == moment(FAR_MS)
    assert (event.files, event.file_bytes) == (3, 3 * FILE_SIZE)
    assert event.user_agent == "spark"


async def test_the_whole_of_it_is_noted_at_the_end(edge: Edge) -> None:
    await edge.post(ORDERS)
    (event,) = edge.audit.noted
    assert (event.kind, event.files, event.file_bytes) == (AuditKind.REQUEST, 8, 8 * FILE_SIZE)
    assert event.request_id == edge.audit.appended[0].request_id
    assert sum(files for files, _ in edge.metrics.files) == 8


async def test_a_broken_audit_log_refuses_grants(edge: Edge) -> None:
    edge.audit.broken = True
    reply = await edge.post(ORDERS)
    assert reply.status == 503
    assert b"files.test" not in reply.body


async def test_a_client_that_goes_away_stops_the_services(edge: Edge) -> None:
    edge.services.snapshot.gate = asyncio.Semaphore(2)
    connection = edge.server.connect()
    waiting = asyncio.create_task(connection.request("POST", BASE + ORDERS, AUTH))
    await connection.wait_for_output(b"part-00002")
    connection.disconnect()
    assert not (await waiting).complete
    assert (await edge.settled()).outcome == "CLIENT_GONE"
    assert edge.services.snapshot.closed == 1
    assert edge.services.snapshot.pages <= 2


async def test_a_client_that_goes_away_in_the_middle_of_its_body_is_gone(edge: Edge) -> None:
    connection = edge.server.connect()
    head = f"POST {BASE}{ORDERS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-of-ann\r\n"
    connection.send(f"{head}Content-Length: 10\r\n\r\n{{".encode())
    for _ in range(5):
        await asyncio.sleep(0)
    connection.disconnect()
    assert (await edge.settled()).outcome == "CLIENT_GONE"
