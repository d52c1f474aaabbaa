from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from gateway.edge.signing import SignedPage, moment
from gateway.errors import Unavailable
from tests.compressed import Reader, plain
from tests.fakes.http_connection import MemoryConnection
from tests.fakes.services import FAR_MS, FakeTable
from tests.http import FINAL_CHUNK
from tests.new_objects import NewObjects
from tests.unit.edge.conftest import AUTH, BASE, Edge, make_world, start_edge

LARGE = "/shares/Sales/schemas/eu/tables/large/query"
SMALL = "/shares/Sales/schemas/eu/tables/small/query"
FEED = "/shares/Sales/schemas/eu/tables/feed/changes?startingVersion=0"
END = "includeEndStreamAction=true"
CODINGS = pytest.mark.parametrize("coding", ["gzip", "zstd"])


def world():
    tables = [
        FakeTable(share="Sales", schema="eu", name="large", files=900),
        FakeTable(share="Sales", schema="eu", name="small", files=2),
        FakeTable(share="Sales", schema="eu", name="feed", history_shared=True, change_feed=True),
    ]
    return make_world(tables=tables, files_per_page=300)


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    async with start_edge(world=world()) as started:
        yield started


@CODINGS
async def test_a_compressed_answer_is_the_same_answer(edge: Edge, coding: str) -> None:
    expected = await edge.post(LARGE)
    reply = await edge.post(LARGE, Accept_Encoding=coding)
    assert reply.complete
    assert reply.headers["Content-Encoding"] == coding
    assert "Content-Length" not in reply.headers
    assert len(reply.body) < len(expected.body) / 3
    assert plain(reply.headers, reply.body) == expected.body
    assert reply.headers["Vary"] == expected.headers["Vary"] == "Accept-Encoding"
    assert reply.headers["Cache-Control"] == expected.headers["Cache-Control"] == "no-store"


@CODINGS
async def test_changes_are_compressed_too(edge: Edge, coding: str) -> None:
    reply = await edge.get(FEED, Accept_Encoding=f"{coding}, identity;q=0")
    assert reply.headers["Content-Encoding"] == coding
    assert plain(reply.headers, reply.body) == (await edge.get(FEED)).body


async def test_a_short_answer_is_sent_as_it_is(edge: Edge) -> None:
    reply = await edge.post(SMALL, Accept_Encoding="gzip")
    assert "Content-Encoding" not in reply.headers
    assert reply.headers["Vary"] == "Accept-Encoding"
    assert len(reply.lines) == 4


async def test_a_client_that_refuses_it_as_it_is_gets_a_short_answer_compressed(edge: Edge) -> None:
    reply = await edge.post(SMALL, Accept_Encoding="gzip, identity;q=0")
    assert len(plain(reply.headers, reply.body).splitlines()) == 4


async def test_nothing_is_compressed_where_that_is_off() -> None:
    async with start_edge(world=world(), compresses=False) as edge:
        reply = await edge.post(LARGE, Accept_Encoding="gzip, zstd")
    assert "Content-Encoding" not in reply.headers
    assert "Vary" not in reply.headers
    assert len(reply.lines) == 902


async def test_proxies_are_told_to_pass_on_pages_as_they_come(edge: Edge) -> None:
    assert (await edge.post(LARGE)).headers["X-Accel-Buffering"] == "no"


@CODINGS
async def test_a_page_can_be_read_before_the_next_one_is_made(edge: Edge, coding: str) -> None:
    gate = edge.services.snapshot.gate = asyncio.Semaphore(1)
    connection = edge.server.connect()
    headers = AUTH | {"Accept-Encoding": coding}
    waiting = asyncio.create_task(connection.request("POST", BASE + LARGE, headers))
    for page in range(1, 4):
        await wait_for_lines(connection, coding, 2 + 300 * page)
        assert edge.services.snapshot.pages == page
        gate.release()
    assert (await waiting).complete


async def wait_for_lines(connection: MemoryConnection, coding: str, count: int) -> None:
    async with asyncio.timeout(60):
        while Reader(coding).read(connection.body_so_far()).count(b"\n") < count:
            connection.transport.changed.clear()
            await connection.transport.changed.wait()


@CODINGS
async def test_a_failure_on_the_way_leaves_a_compressed_answer_without_its_end(
    edge: Edge, coding: str
) -> None:
    edge.services.snapshot.fail_after = 2
    connection = edge.server.connect()
    reply = await connection.request("POST", BASE + LARGE, AUTH | {"Accept-Encoding": coding})
    assert reply.status == 200
    assert not reply.complete
    assert connection.transport.aborted
    assert FINAL_CHUNK not in connection.transport.output
    reader = Reader(coding)
    assert len(reader.read(reply.body).splitlines()) == 602
    assert not reader.is_whole


@CODINGS
async def test_an_error_that_was_asked_for_is_the_last_line_of_a_whole_compressed_answer(
    edge: Edge, coding: str
) -> None:
    edge.services.snapshot.fail_after = 2
    edge.services.snapshot.error = Unavailable("the storage does not answer")
    reply = await edge.post(LARGE, Accept_Encoding=coding, delta_sharing_capabilities=END)
    assert reply.complete
    lines = plain(reply.headers, reply.body).splitlines()
    assert len(lines) == 603
    assert json.loads(lines[-1]) == {
        "endStreamAction": {"errorMessage": "the storage does not answer", "httpStatusErrorCode": 503}
    }


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
async def test_a_connection_serves_on_after_each_answer(edge: Edge, coding: str) -> None:
    connection = edge.server.connect()
    for _ in range(3):
        reply = await connection.request("POST", BASE + LARGE, AUTH | {"Accept-Encoding": coding})
        assert reply.complete
        assert len(plain(reply.headers, reply.body).splitlines()) == 902


async def test_requests_that_come_at_once_are_answered_in_their_order(edge: Edge) -> None:
    connection = edge.server.connect()
    paths = [LARGE, SMALL] * 5
    for path in paths:
        head = f"POST {BASE}{path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-of-ann\r\n"
        connection.send(f"{head}Accept-Encoding: gzip\r\nContent-Length: 0\r\n\r\n".encode())
    for path in paths:
        reply = await connection.reply("POST")
        assert reply.complete
        lines = plain(reply.headers, reply.body).splitlines()
        assert len(lines) == (902 if path == LARGE else 4)


async def test_an_answer_that_is_cut_off_takes_no_other_connection_with_it(edge: Edge) -> None:
    other = edge.server.connect()
    assert (await other.request("POST", BASE + LARGE, AUTH)).complete
    edge.services.snapshot.fail_after = edge.services.snapshot.pages + 1
    assert not (await edge.post(LARGE)).complete
    edge.services.snapshot.fail_after = None
    assert (await other.request("POST", BASE + LARGE, AUTH)).complete


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
async def test_a_client_that_goes_away_stops_the_work_within_a_page(edge: Edge, coding: str) -> None:
    connection = edge.server.connect()
    connection.protocol.pause_writing()
    headers = AUTH | {"Accept-Encoding": coding}
    waiting = asyncio.create_task(connection.request("POST", BASE + LARGE, headers))
    await connection.wait_for_output(b"\r\n\r\n")
    connection.disconnect()
    assert not (await waiting).complete
    assert (await edge.settled()).outcome == "CLIENT_GONE"
    assert edge.services.snapshot.closed == 1
    asked = edge.services.snapshot.pages, len(edge.services.presign.requests)
    # One that was being sent, and one ahead of it.
    assert max(asked) <= 2
    for _ in range(100):
        await asyncio.sleep(0)
    assert asked == (edge.services.snapshot.pages, len(edge.services.presign.requests))


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
async def test_clients_that_take_nothing_hold_two_pages_each_and_a_piece_that_is_being_sent(
    coding: str,
) -> None:
    many = make_world(
        tables=[FakeTable(share="Sales", schema="eu", name="large", files=20_000)], files_per_page=1000
    )
    signed = NewObjects(SignedPage)
    async with start_edge(world=many) as edge:
        connections = [edge.server.connect() for _ in range(4)]
        for connection in connections:
            connection.protocol.pause_writing()
        for connection in connections:
            head = f"POST {BASE}{LARGE} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-of-ann\r\n"
            connection.send(f"{head}Accept-Encoding: {coding}\r\nContent-Length: 0\r\n\r\n".encode())
        made = await edge.services.snapshot.settled_pages(least=2 * len(connections))
        pages = signed.find()
        held = [len(connection.transport.output) for connection in connections]
        for connection in connections:
            connection.disconnect()
    assert made < 20 * len(connections)
    assert 0 < len(pages) <= 2 * len(connections)
    # aiohttp asks whether it may go on when it has written 64 KiB, and our pieces have 256.
    assert max(held) <= (64 + 256 + 4) * 1024


async def test_the_closing_event_says_when_the_last_of_the_urls_ends(edge: Edge) -> None:
    edge.services.presign.step_ms = 5
    await edge.post(LARGE)
    assert (await edge.settled()).expires_at == moment(FAR_MS + 2 * 5)
    assert [event.expires_at for event in edge.audit.appended] == [moment(FAR_MS)]


async def test_a_client_that_leaves_during_a_page_counts_as_having_its_urls(edge: Edge) -> None:
    connection = edge.server.connect()
    connection.protocol.pause_writing()
    waiting = asyncio.create_task(connection.request("POST", BASE + LARGE, AUTH))
    await connection.wait_for_output(b"\r\n\r\n")
    connection.disconnect()
    await waiting
    closing = await edge.settled()
    assert (closing.outcome, closing.files, closing.expires_at) == ("CLIENT_GONE", 300, moment(FAR_MS))
