from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta

import pytest
from aiohttp import web

from gateway.edge.server import Limits
from tests.cases import each_case
from tests.fakes.http_connection import MemoryConnection, memory_server
from tests.unit.edge.conftest import AUTH, BASE, Edge, start_edge

SOON = timedelta(milliseconds=10)
REQUEST = f"GET {BASE}/shares HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-of-ann\r\n\r\n".encode()


async def closed(connection: MemoryConnection) -> None:
    async with asyncio.timeout(60):
        while not connection.transport.closed:
            connection.transport.changed.clear()
            await connection.transport.changed.wait()


@each_case(
    ("raw", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /x HTTP/9.9\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\r\nbad header\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: h\r\nExpect: miracles\r\n\r\n", 417),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ],
)
async def test_bad_http_is_answered_in_json_without_a_banner(edge: Edge, raw: bytes, status: int) -> None:
    connection = edge.server.connect()
    connection.send(raw)
    reply = await connection.reply()
    assert reply.status == status
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert "Server" not in reply.headers
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert json.loads(reply.body)["errorCode"] == "MALFORMED_REQUEST"


async def test_bad_http_does_not_fill_the_log(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        connection = edge.server.connect()
        connection.send(b"GARBAGE\r\n\r\n")
        await connection.reply()
    assert caplog.records == []


async def test_a_fault_outside_of_the_application_is_a_500_in_json(caplog: pytest.LogCaptureFixture) -> None:
    app = web.Application()

    async def handler(request: web.Request) -> web.Response:
        raise ZeroDivisionError("secret")

    app.router.add_get("/", handler)
    async with memory_server(app) as server:
        reply = await server.get("/")
    assert reply.status == 500
    assert json.loads(reply.body) == {"errorCode": "INTERNAL_ERROR", "message": "internal error"}
    assert "Server" not in reply.headers
    assert len(caplog.records) == 1


async def test_a_client_that_sends_nothing_is_closed() -> None:
    async with start_edge(limits=Limits(header_timeout=SOON)) as edge:
        connection = edge.server.connect()
        await closed(connection)
    assert connection.transport.output == b""


async def test_a_client_that_does_not_finish_its_head_is_closed() -> None:
    async with start_edge(limits=Limits(header_timeout=SOON)) as edge:
        connection = edge.server.connect()
        connection.send(REQUEST[:-4])
        await closed(connection)


async def test_a_later_head_has_the_same_time_from_its_first_byte() -> None:
    async with start_edge(limits=Limits(header_timeout=SOON)) as edge:
        connection = edge.server.connect()
        connection.send(REQUEST)
        assert (await connection.reply()).status == 200
        assert not connection.transport.closed
        connection.send(REQUEST[:20])
        await closed(connection)


async def test_a_head_in_pieces_is_served_and_stops_the_clock() -> None:
    async with start_edge(limits=Limits(header_timeout=timedelta(milliseconds=50))) as edge:
        edge.services.snapshot.gate = asyncio.Semaphore(0)
        connection = edge.server.connect()
        head = f"POST {BASE}/shares/Sales/schemas/eu/tables/orders/query HTTP/1.1\r\nHost: h\r\n"
        for piece in (head, "Authorization: Bearer token-of-ann\r\n", "Content-Length: 0\r\n\r\n"):
            connection.send(piece.encode())
        loop = asyncio.get_running_loop()
        await _pass(loop, 0.1)
        assert not connection.transport.closed
        for _ in range(3):
            edge.services.snapshot.gate.release()
        assert (await connection.reply()).complete


async def test_a_head_that_only_grows_is_refused() -> None:
    async with start_edge(limits=Limits(header_limit=1000)) as edge:
        connection = edge.server.connect()
        connection.send(b"GET / HTTP/1.1\r\n")
        for number in range(60):
            await asyncio.sleep(0)
            connection.send(b"X-%d: %b\r\n" % (number, b"y" * 90))
        reply = await connection.reply()
    assert reply.status == 431
    assert reply.headers["Connection"] == "close"
    assert json.loads(reply.body)["errorCode"] == "MALFORMED_REQUEST"


async def test_an_idle_connection_is_kept_for_a_while_and_then_closed() -> None:
    async with start_edge(limits=Limits(keep_alive=SOON, header_timeout=timedelta(minutes=1))) as edge:
        connection = edge.server.connect()
        connection.send(REQUEST)
        assert (await connection.reply()).status == 200
        await closed(connection)


async def test_one_connection_serves_many_requests(edge: Edge) -> None:
    connection = edge.server.connect()
    for _ in range(3):
        assert (await connection.request("GET", f"{BASE}/shares", AUTH)).status == 200


async def test_a_client_that_takes_nothing_is_cut_off() -> None:
    async with start_edge(limits=Limits(write_timeout=SOON)) as edge:
        connection = edge.server.connect()
        connection.protocol.pause_writing()
        await closed(connection)
    assert connection.transport.aborted


async def test_a_client_that_takes_its_answer_in_time_is_not() -> None:
    async with start_edge(limits=Limits(write_timeout=SOON)) as edge:
        connection = edge.server.connect()
        connection.protocol.pause_writing()
        connection.protocol.resume_writing()
        await _pass(asyncio.get_running_loop(), 0.03)
        assert not connection.transport.closed


async def test_a_stalled_answer_that_is_closed_ends_all_the_same() -> None:
    async with start_edge(limits=Limits(write_timeout=SOON)) as edge:
        connection = edge.server.connect()
        connection.protocol.pause_writing()
        transport = connection.transport
        # Closing waits for what is still to be sent, so the protocol does not hear of its end.
        transport.protocol = None
        connection.protocol.force_close()
        await _pass(asyncio.get_running_loop(), 0.03)
    assert transport.aborted


async def test_a_connection_too_many_is_told_so() -> None:
    async with start_edge(limits=Limits(max_connections=2)) as edge:
        first, second, third = (edge.server.connect() for _ in range(3))
        refused = await third.reply()
        assert (await second.request("GET", f"{BASE}/shares", AUTH)).status == 200
        first.disconnect()
        await _pass(asyncio.get_running_loop(), 0)
        assert (await edge.get("/shares")).status == 200
    assert refused.status == 503
    assert refused.headers["Retry-After"] == "1"
    assert json.loads(refused.body)["errorCode"] == "TEMPORARILY_UNAVAILABLE"


async def test_compressed_bodies_are_not_unpacked(edge: Edge) -> None:
    reply = await edge.post(
        "/shares/Sales/schemas/eu/tables/orders/query", b"\x1f\x8b junk", Content_Encoding="gzip"
    )
    assert reply.status == 415


async def _pass(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Let the loop's clock go on, as the timers under test do."""
    done = loop.create_future()
    loop.call_later(seconds, done.set_result, None)
    await done
