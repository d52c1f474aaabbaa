"""Replicas that sign, over one Redis: the same URLs from each, whatever happens to it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from gateway.config.redis import RedisConfig
from gateway.ports import SigningCost
from tests.integration.replica import PATIENT, dropping
from tests.integration.signing_replica import FILES, assert_right, signing_replica
from tests.waiting import eventually_async

HASH, PRIVATE_KEY, CALL = SigningCost.HASH, SigningCost.PRIVATE_KEY, SigningCost.CALL
ALWAYS = {"redis": "always"}


def values(server) -> list[bytes]:
    """Return the names of what replicas have stored."""
    client = server.client()
    return [name for name in client.keys("*:v") if client.strlen(name) > 100]


async def stored(server, count: int) -> None:
    await eventually_async(lambda: len(values(server)) >= count)


async def test_processes_give_the_same_bytes_and_mint_one_session(server):
    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(signing_process(server.url)) for _ in range(3)]
        for process in processes:
            assert await process.read() == b"ready\n"
        for process in processes:
            process.go_on()
        answers = [json.loads(await process.read()) for process in processes]
    assert len({tuple(answer["urls"]) for answer in answers}) == 1
    assert sum(answer["minted"] for answer in answers) == 1
    assert_right(answers[0]["urls"], 0)


@dataclass
class SigningProcess:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def read(self) -> bytes:
        return await self.reader.readline()

    def go_on(self) -> None:
        self.writer.write(b"go on\n")


@asynccontextmanager
async def signing_process(url: str) -> AsyncIterator[SigningProcess]:
    """Run a replica in a process of its own, which ends with the block."""
    command = [sys.executable, "-m", "tests.integration.sign_page", url]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=2**20)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield SigningProcess(process.stdout, process.stdin)
    finally:
        process.kill()
        await process.wait()


async def test_a_stampede_on_sessions_mints_one_and_signs_each_page_once_in_each_replica(server):
    async with (
        signing_replica(HASH, has_sessions=True, url=server.url) as one,
        signing_replica(HASH, has_sessions=True, url=server.url) as two,
    ):
        one.vendor.seconds = two.vendor.seconds = 0.02
        requests = [(each, page) for page in range(10) for each in (one, two) for _ in range(32)]
        results = await asyncio.gather(*(each.urls(page) for each, page in requests))
        by_page: dict[int, set[tuple[str, ...]]] = {}
        for (_, page), urls in zip(requests, results, strict=True):
            by_page.setdefault(page, set()).add(tuple(urls))
        assert len(one.vendor.minted) + len(two.vendor.minted) == 1
        assert [len(each.vendor.calls) for each in (one, two)] == [10, 10]
    assert all(len(answers) == 1 for answers in by_page.values())
    for page, (answer,) in by_page.items():
        assert_right(answer, page)


async def test_a_stampede_on_calls_makes_each_once_across_replicas(server):
    async with signing_replica(CALL, url=server.url) as one, signing_replica(CALL, url=server.url) as two:
        one.vendor.seconds = two.vendor.seconds = 0.05
        requests = [(each, page) for page in range(10) for each in (one, two) for _ in range(16)]
        results = await asyncio.gather(*(each.urls(page) for each, page in requests))
        signed = Counter([*one.vendor.signed, *two.vendor.signed])
    assert len(signed) == 10 * FILES
    assert set(signed.values()) == {1}
    for (_, page), urls in zip(requests, results, strict=True):
        assert_right(urls, page)


@pytest.mark.parametrize("cost", SigningCost)
async def test_what_one_replica_has_signed_another_finds(server, cost):
    async with (
        signing_replica(cost, urls=ALWAYS, url=server.url) as one,
        signing_replica(cost, urls=ALWAYS, url=server.url) as two,
    ):
        first = await one.urls()
        await stored(server, 1)
        assert await two.urls() == first
        assert two.vendor.calls == []
        assert (one.served("signed"), two.served("redis")) == (FILES, FILES)
        # And once more without Redis.
        assert await two.urls() == first
        assert two.served("memory") == FILES


async def test_pages_that_are_asked_for_at_once_are_looked_up_in_one_round_trip(server):
    async with signing_replica(url=server.url) as one:
        for page in range(15):
            await one.urls(page)
        await stored(server, 15)
    async with signing_replica(url=server.url) as two:
        client = server.client()
        client.config_resetstat()
        results = await asyncio.gather(*(two.urls(page) for page in range(15)))
        calls = client.info("commandstats")["cmdstat_get"]["calls"]
        reads = client.info("stats")["total_reads_processed"]
        assert two.vendor.calls == []
    for page, urls in enumerate(results):
        assert_right(urls, page)
    # Fifteen pages and one epoch, which is asked for once.
    assert calls == 16
    assert reads < 10


async def test_values_tell_nothing_and_take_half_the_room(server):
    async with signing_replica(urls=ALWAYS, url=server.url, has_sessions=True) as one:
        urls = await one.urls()
        await stored(server, 2)
    client = server.client()
    contents = [client.get(name) for name in values(server)]
    names = b"".join(client.keys("*"))
    for secret in (one.vendor.minted[0].id, urls[0].rpartition("sig=")[2], "orders", "lake", "very-"):
        assert all(secret.encode() not in content for content in contents)
        assert secret.encode() not in names
    assert max(map(len, contents)) < FILES * 32 + 1000


@pytest.mark.parametrize("cost", SigningCost)
async def test_a_storage_that_is_dropped_is_forgotten_by_redis(server, cost):
    async with signing_replica(cost, urls=ALWAYS, url=server.url, has_sessions=True) as one:
        await one.urls()
        await stored(server, 2)
        config = RedisConfig(url=server.url, timeout=PATIENT)
        async with dropping(config) as drops:
            await eventually_async(lambda: server.client().zcard(server.client().keys("*:i")[0]) == 2)
            assert await drops.drop_storage("lake") == 2
        assert values(server) == []
    async with signing_replica(cost, urls=ALWAYS, url=server.url, has_sessions=True) as two:
        assert_right(await two.urls(), 0)
        assert len(two.vendor.minted) == 1


@pytest.mark.parametrize("cost", SigningCost)
async def test_a_full_redis_is_a_miss_and_still_read(server, cost):
    async with signing_replica(cost, urls=ALWAYS, url=server.url) as one:
        first = await one.urls(0)
        await stored(server, 1)
        server.client().config_set("maxmemory", 1)
        async with signing_replica(cost, urls=ALWAYS, url=server.url) as two:
            assert await two.urls(0) == first
            for page in range(1, 9):
                assert_right(await two.urls(page), page)
            await eventually_async(lambda: two.errors("full") >= 1)
            assert two.is_up


@pytest.mark.parametrize("cost", SigningCost)
async def test_whatever_lies_there_instead_is_a_miss_and_never_a_wrong_url(server, cost):
    client = server.client()
    async with signing_replica(cost, urls=ALWAYS, url=server.url) as one:
        for page in range(8):
            await one.urls(page)
            await one.urls(page, "secrets")
        await stored(server, 16)
    names = sorted(values(server))
    contents = [client.get(name) for name in names]
    for number, name in enumerate(names):
        other = contents[(number + 1) % len(names)]
        spoilt = [
            other,
            b"garbage",
            contents[number][:-1],
            contents[number][::-1],
            b"\x01",
            other[:50] + b"x",
        ]
        client.set(name, spoilt[number % len(spoilt)], px=60_000)
    client.delete(names[0])
    client.rpush(names[0], "a list")
    async with signing_replica(cost, urls=ALWAYS, url=server.url) as two:
        for page in range(8):
            assert_right(await two.urls(page), page)
            assert_right(await two.urls(page, "secrets"), page, "secrets")
        assert two.served("redis") == 0
        assert two.errors("unreadable") >= 15
        assert two.is_up


async def test_everything_flushed_is_signed_once_more(server):
    async with signing_replica(url=server.url) as one, signing_replica(url=server.url) as two:
        first = await one.urls()
        await stored(server, 1)
        server.client().flushall()
        assert await two.urls() == first
        assert (len(one.vendor.calls), len(two.vendor.calls)) == (1, 1)


async def test_many_replicas_that_turn_to_a_cold_page_at_once_each_have_it_right(server):
    async with AsyncExitStack() as stack:
        replicas = [
            await stack.enter_async_context(signing_replica(urls=ALWAYS, url=server.url)) for _ in range(6)
        ]
        results = await asyncio.gather(*(each.urls() for each in replicas for _ in range(8)))
        assert len({tuple(urls) for urls in results}) == 1
        assert all(len(each.vendor.calls) <= 1 for each in replicas)
    assert_right(results[0], 0)
