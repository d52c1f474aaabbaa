from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from gateway.edge.signing import moment
from tests.fakes.services import FakeTable
from tests.unit.edge.conftest import AUTH, BASE, NOON, Edge, make_world, start_edge

LARGE = "/shares/Sales/schemas/eu/tables/large/query"


def world_with(files: int):
    return make_world(tables=[FakeTable(share="Sales", schema="eu", name="large", files=files)])


def milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


async def test_one_page_is_made_ahead_of_a_client_that_takes_nothing_and_no_more() -> None:
    world = world_with(3000)
    world.files_per_page = 300
    async with start_edge(world=world) as edge:
        connection = edge.server.connect()
        connection.protocol.pause_writing()
        waiting = asyncio.create_task(connection.request("POST", BASE + LARGE, AUTH))
        await connection.wait_for_output(b"part-00000")
        for _ in range(200):
            await asyncio.sleep(0)
        assert edge.services.snapshot.pages == 2
        assert len(edge.services.presign.requests) == 2
        connection.protocol.resume_writing()
        reply = await waiting
    assert len(reply.lines) == 3002


@pytest.fixture
async def expiring():
    async with start_edge(world=world_with(9)) as edge:
        edge.services.catalog.expires_at_ms = lambda: milliseconds(edge.clock[0]) + 60_000
        yield edge


async def test_a_grant_that_runs_out_on_the_way_is_renewed(expiring: Edge) -> None:
    expiring.services.snapshot.gate = asyncio.Semaphore(1)
    connection = expiring.server.connect()
    waiting = asyncio.create_task(connection.request("POST", BASE + LARGE, AUTH))
    await connection.wait_for_output(b"part-00002")
    expiring.clock[0] = moment(milliseconds(NOON) + 56_000)
    expiring.services.snapshot.gate.release()
    expiring.services.snapshot.gate.release()
    assert len((await waiting).lines) == 11
    assert len(expiring.services.catalog.requests) == 2


async def test_a_table_that_was_moved_on_the_way_is_not_signed_for(expiring: Edge) -> None:
    expiring.services.snapshot.gate = asyncio.Semaphore(1)
    connection = expiring.server.connect()
    waiting = asyncio.create_task(connection.request("POST", BASE + LARGE, AUTH))
    await connection.wait_for_output(b"part-00002")
    expiring.clock[0] = moment(milliseconds(NOON) + 56_000)
    moved = FakeTable(share="Sales", schema="eu", name="large", auxiliary_locations=("s3://elsewhere/t",))
    expiring.services.catalog.world.tables = [moved]
    expiring.services.snapshot.gate.release()
    reply = await waiting
    assert not reply.complete
    assert len(expiring.services.presign.requests) == 1
    assert (await expiring.settled()).outcome == "TEMPORARILY_UNAVAILABLE"


@pytest.mark.parametrize("files", [0, 9])
async def test_an_answer_without_its_last_message_is_not_taken_for_a_whole_one(files: int) -> None:
    async with start_edge(world=world_with(files)) as edge:
        edge.services.snapshot.cut = True
        reply = await edge.server.post(BASE + LARGE, AUTH)
        assert not reply.complete or reply.status == 500
        assert (await edge.settled()).outcome == "INTERNAL_ERROR"


async def test_a_recipient_that_is_shut_out_on_the_way_gets_no_more_urls(expiring: Edge) -> None:
    expiring.services.snapshot.gate = asyncio.Semaphore(1)
    connection = expiring.server.connect()
    waiting = asyncio.create_task(connection.request("POST", BASE + LARGE, AUTH))
    await connection.wait_for_output(b"part-00002")
    expiring.clock[0] = moment(milliseconds(NOON) + 56_000)
    expiring.services.catalog.world.recipients = []
    expiring.services.snapshot.gate.release()
    assert not (await waiting).complete
    assert (await expiring.settled()).outcome == "UNAUTHENTICATED"
    assert len(expiring.services.presign.requests) == 1


def test_a_moment_is_in_utc() -> None:
    assert moment(1_700_000_000_500) == datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)
