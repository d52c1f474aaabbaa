from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gateway.commands.comparison.client import Refused, SharingClient, SharingError, Unreachable
from gateway.commands.comparison.profile import Profile
from gateway.domain.name import TableName
from tests.fakes.sharing_server import FakeSharingServer, FakeTable

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
ORDERS = TableName("sales", "q1", "orders")
Connect = Callable[..., AbstractAsyncContextManager[SharingClient]]


class Sleeps(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def sleeps() -> Sleeps:
    return Sleeps()


@pytest.fixture
def server() -> FakeSharingServer:
    table = FakeTable(
        version=7,
        metadata={"id": "m"},
        files=[
            {"id": "f1", "size": 3, "partitionValues": {"p": None}, "stats": "{}", "expirationTimestamp": 1}
        ],
        contents={"f1": b"abc"},
    )
    return FakeSharingServer(shares={"sales": {}}, tables={("sales", "q1", "orders"): table})


@pytest.fixture
def connect(tmp_path: Path, sleeps: Sleeps) -> Connect:
    @asynccontextmanager
    async def connected(
        server: FakeSharingServer, *, force_close: bool = False
    ) -> AsyncIterator[SharingClient]:
        runner = web.AppRunner(server.app(), access_log=None)
        await runner.setup()
        path = str(tmp_path / "socket")
        await web.UnixSite(runner, path).start()
        profile = Profile(endpoint="http://server/s", bearer_token="fake-token-0123456789")
        connector = aiohttp.UnixConnector(path, force_close=force_close)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield SharingClient(session, profile, clock=lambda: NOON, sleep=sleeps)
        await runner.cleanup()

    return connected


async def test_lists_are_read_page_by_page(connect, server):
    server.page_size = 2
    server.shares = {f"s{number}": {} for number in range(5)}
    async with connect(server) as client:
        assert [share["name"] for share in await client.list_shares()] == ["s0", "s1", "s2", "s3", "s4"]
    assert len(server.requests) == 3


async def test_pages_that_never_end_are_an_error(connect, server):
    server.page_size = 0
    async with connect(server) as client:
        with pytest.raises(SharingError, match="do not come to an end"):
            await client.list_shares()


async def test_tables_of_a_server_without_all_tables_are_listed_by_schema(connect, server):
    server.has_all_tables = False
    async with connect(server) as client:
        (table,) = await client.list_tables("sales")
    assert (table["schema"], table["name"]) == ("q1", "orders")


async def test_the_version_of_a_server_without_get_is_asked_with_head(connect, server):
    server.has_get_version = False
    async with connect(server) as client:
        assert await client.get_version(ORDERS) == 7


async def test_a_query_gives_version_heads_and_files(connect, server):
    async with connect(server) as client:
        answer = await client.query(ORDERS)
    assert (answer.version, answer.protocol, answer.metadata) == (7, {"minReaderVersion": 1}, {"id": "m"})
    (file,) = answer.files
    assert (file.id, file.size, file.partition_values, file.stats) == ("f1", 3, {"p": None}, "{}")
    assert file.expires
    assert file.name == "f1.parquet"
    assert "s3cr3t" not in repr(file)


async def test_names_are_quoted(connect, server):
    name = TableName("sälés.x", "a?b", "c%2Fd#e")
    server.tables[name.share, name.schema, name.table] = FakeTable(version=9, metadata={"id": "m"})
    async with connect(server) as client:
        assert await client.get_version(name) == 9


async def test_a_file_is_downloaded_without_the_token(connect, server):
    target = io.BytesIO(b"something longer from before")
    async with connect(server) as client:
        answer = await client.query(ORDERS)
        assert await client.download(answer.files[0], target) == 3
    assert target.getvalue() == b"abc"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_server_is_asked_again(connect, server, sleeps, status):
    server.hiccups = [(status, {}), (status, {})]
    async with connect(server) as client:
        assert await client.get_version(ORDERS) == 7
    assert sleeps == [1.0, 2.0]


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("7", 7.0),
        (format_datetime(NOON + timedelta(seconds=9), usegmt=True), 9.0),
        (format_datetime(NOON - timedelta(seconds=9), usegmt=True), 0.0),
        ("9999999", 60.0),
        ("soon", 1.0),
        ("-1", 1.0),
    ],
)
async def test_a_server_says_how_long_to_wait(connect, server, sleeps, header, pause):
    server.hiccups = [(429, {"Retry-After": header})]
    async with connect(server) as client:
        await client.get_version(ORDERS)
    assert sleeps == [pause]


async def test_a_server_that_stays_busy_is_given_up(connect, server, sleeps):
    server.hiccups = [(503, {})] * 99
    async with connect(server) as client:
        with pytest.raises(Refused) as caught:
            await client.get_version(ORDERS)
    assert caught.value.status == 503
    assert len(sleeps) == 4


async def test_a_refusal_is_not_repeated_and_carries_the_servers_words(connect, server, sleeps):
    server.tables["sales", "q1", "orders"].errors = {"query": 400}
    async with connect(server) as client:
        with pytest.raises(Refused, match=r"400 SOME_CODE: .*/query fails"):
            await client.query(ORDERS)
    assert sleeps == []


async def test_an_error_at_the_end_of_a_stream_is_an_error(connect, server):
    server.tables[
        "sales", "q1", "orders"
    ].tail = b'{"endStreamAction":{"errorMessage":"cut","httpStatusErrorCode":503}}\n'
    async with connect(server) as client:
        with pytest.raises(Refused, match="503 cut"):
            await client.query(ORDERS)


async def test_a_good_end_of_a_stream_and_unknown_lines_are_ignored(connect, server):
    server.tables[
        "sales", "q1", "orders"
    ].tail = b'{"endStreamAction":{"refreshToken":"r"}}\n{"novelty":{}}\n\n'
    async with connect(server) as client:
        assert len((await client.query(ORDERS)).files) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'{"file":{"url":"http://h/x"}}',
        b'{"file":{"id":"x"}}',
        b'{"file":7}',
        b'{"file":{"id":"x","url":"http://h/x","partitionValues":[1]}}',
        b'{"protocol":7}',
    ],
)
async def test_lines_that_break_the_protocol_are_an_error(connect, server, line):
    server.tables["sales", "q1", "orders"].tail = line
    async with connect(server) as client:
        with pytest.raises(SharingError):
            await client.query(ORDERS)


async def test_a_server_that_never_answered_is_not_asked_again_and_named_by_its_fault_alone(tmp_path, sleeps):
    profile = Profile(endpoint="http://server/s", bearer_token="t0k3n")
    connector = aiohttp.UnixConnector(str(tmp_path / "nobody"))
    async with aiohttp.ClientSession(connector=connector) as session:
        client = SharingClient(session, profile, clock=lambda: NOON, sleep=sleeps)
        with pytest.raises(Unreachable, match="cannot connect: No such file"):
            await client.list_shares()
    assert sleeps == []


async def test_a_server_that_goes_away_is_asked_again(connect, server, sleeps, tmp_path):
    # With a connection for each request: one that stays open does not notice that the socket is gone.
    async with connect(server, force_close=True) as client:
        await client.list_shares()
        (tmp_path / "socket").unlink()
        with pytest.raises(Unreachable):
            await client.list_shares()
    assert len(sleeps) == 4


async def test_a_server_that_echoes_the_token_does_not_get_it_printed(connect, server):
    server.token = "another"
    async with connect(server) as client:
        with pytest.raises(Refused) as caught:
            await client.list_shares()
    assert "fake-token" not in str(caught.value)


async def test_a_store_that_echoes_the_signature_does_not_get_it_printed(connect, server):
    async with connect(server) as client:
        (file,) = (await client.query(ORDERS)).files
        server.tables["sales", "q1", "orders"].contents.clear()
        with pytest.raises(Refused) as caught:
            await client.download(file, io.BytesIO())
    assert str(caught.value) == "403 from the store of the files"


@pytest.mark.parametrize("url", ["", "s3://bucket/key", "http://[", "file:///etc/passwd"])
async def test_a_file_without_a_usable_url_is_an_error(connect, server, url):
    server.tables["sales", "q1", "orders"].files = [{"id": "x", "url": url}]
    async with connect(server) as client:
        (file,) = (await client.query(ORDERS)).files
        with pytest.raises(SharingError):
            await client.download(file, io.BytesIO())
