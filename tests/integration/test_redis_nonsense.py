"""Something on the port of Redis that does not speak its protocol: a miss, and used again when it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from gateway.config.redis import RedisConfig
from tests.integration.replica import PATIENT, Provider, dropping, replica
from tests.waiting import eventually_async

# Whoever answers so is left alone.
UNREADABLE = {
    "integer": b":abc\r\n",
    "length": b"$abc\r\n",
    "count": b"*abc\r\n",
    "line without an end": b"+" + b"x" * 200_000,
    "long line": b"+" + b"x" * 200_000 + b"\r\n",
    "nested arrays": b"*1\r\n" * 3000 + b":1\r\n",
    "deep and wide": b"*2\r\n" * 2000 + b":abc\r\n",
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a later protocol": b"%1\r\n+a\r\n+b\r\n",
    "binary": b"\x00\xff\xfe\r\n",
    "nothing": b"\r\n",
    "words of a full one": b":OOM\r\n",
    "half an answer": b"$5\r\nab",
}
# The rest of these is waited for, until the timeout.
UNFINISHED = {UNREADABLE["line without an end"], UNREADABLE["half an answer"]}
# These can be read, and make no sense: each is a miss of its own.
SENSELESS = {
    "negative count": b"*-7\r\n",
    "error without words": b"-\xff\xff\r\n",
    "always fine": b"+OK\r\n",
    "numbers": b"*2\r\n:1\r\n:2\r\n",
    "too much": b":1\r\n:1\r\n:1\r\n",
}
ALL = UNREADABLE | SENSELESS
SENSE = {b"EVAL": b":1\r\n", b"GET": b"$-1\r\n", b"ZRANGE": b"*0\r\n"}


@dataclass
class Server:
    """Answers commands as an empty Redis would, or all with the same bytes."""

    nonsense: bytes = b""
    port: int = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readline():
                arguments = [await _argument(reader) for _ in range(int(head[1:]))]
                writer.write(self.nonsense or SENSE.get(arguments[0].upper(), b"+OK\r\n"))
                await writer.drain()
        writer.close()


async def _argument(reader: asyncio.StreamReader) -> bytes:
    size = int((await reader.readline())[1:])
    return (await reader.readexactly(size + 2))[:-2]


@asynccontextmanager
async def running(nonsense: bytes = b"") -> AsyncIterator[Server]:
    server = Server(nonsense)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    async with listener:
        yield server


@pytest.mark.parametrize("nonsense", UNREADABLE.values(), ids=UNREADABLE)
async def test_who_cannot_be_understood_is_left_alone_until_he_can(nonsense, caplog):
    provider = Provider()
    timeout = "300ms" if nonsense in UNFINISHED else PATIENT
    async with running() as server, replica(provider, url=server.url, timeout=timeout) as one:
        await one.issue("before")
        caplog.clear()
        server.nonsense = nonsense
        for number in range(12):
            await one.issue(f"during-{number}")
        assert not one.is_up
        assert one.errors("connection") + one.errors("timeout") >= 5
        server.nonsense = b""
        await eventually_async(lambda: one.is_up)
        await one.issue("after")
    assert len(provider.calls) == 14
    assert caplog.text.count("redis is out of order") == 1
    assert caplog.text.count("redis is back") == 1


@pytest.mark.parametrize("nonsense", SENSELESS.values(), ids=SENSELESS)
async def test_answers_that_make_no_sense_are_misses(nonsense):
    provider = Provider()
    async with running() as server, replica(provider, url=server.url) as one:
        server.nonsense = nonsense
        for number in range(12):
            await one.issue(f"during-{number}")
        server.nonsense = b""
        await eventually_async(lambda: one.is_up)
        await one.issue("after")
    assert len(provider.calls) == 13


@pytest.mark.parametrize("kind", ["server", "cluster", "sentinel"])
@pytest.mark.parametrize("nonsense", ALL.values(), ids=ALL)
async def test_nonsense_from_the_start_keeps_nothing_from_starting_serving_and_ending(kind, nonsense):
    provider = Provider()
    async with running(nonsense) as server:
        places: dict[str, Any] = {
            "server": {"url": server.url},
            "cluster": {"url": server.url, "cluster": True},
            "sentinel": {"sentinel": {"addresses": [f"127.0.0.1:{server.port}"], "service": "lake"}},
        }
        async with replica(provider, is_up=False, timeout="100ms", **places[kind]) as one:
            for number in range(3):
                await one.issue(f"t{number}")
    assert len(provider.calls) == 3


@pytest.mark.parametrize("nonsense", ALL.values(), ids=ALL)
async def test_a_drop_says_that_it_failed(nonsense):
    timeout = timedelta(seconds=2) if nonsense in UNFINISHED else PATIENT
    async with running() as server:
        config = RedisConfig(url=server.url, timeout=timeout)
        async with dropping(config) as drops:
            assert await drops.drop_recipient("ann") == 0
            server.nonsense = nonsense
            assert await drops.drop_recipient("ann") is None
