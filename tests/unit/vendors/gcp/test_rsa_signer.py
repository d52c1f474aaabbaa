from __future__ import annotations

import asyncio
import threading

import pytest

from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.errors import Unavailable, Unsupported
from gateway.ports import SigningCost
from tests.cases import each_case
from tests.unit.vendors.gcp.signed import (
    GATEWAY,
    HOUR,
    PLACE,
    WINDOW,
    key_file,
    read,
    small_key,
    urls_of,
    window_of,
)
from tests.waiting import eventually_async
from vendors.gcp.rsa_signer import RsaSigner
from vendors.gcp.service_key import KeyReader, ServiceKey, parse_key

TABLE = parse_location("gs://lake/sales/orders")


def signer(key: ServiceKey | None = None) -> RsaSigner:
    return RsaSigner(read_key=lambda: key or parse_key(key_file()), place=PLACE)


async def test_url_is_believed_for_its_file_alone():
    (url,) = await urls_of(signer(), TABLE, "date=2021-04-28/part 0+é%20.parquet")

    assert read(url).is_by(small_key().public_key())
    assert read(url).signer == GATEWAY
    assert not read(url, "PUT").is_by(small_key().public_key())
    assert not read(url.replace("part%200", "part%201")).is_by(small_key().public_key())


@each_case("count", [0, 1, 63, 64, 65, 300])
async def test_each_path_gets_its_own_signature_in_order(count):
    urls = await urls_of(signer(), TABLE, *(f"part-{number}" for number in range(count)))

    assert len(urls) == count
    assert all(read(url).is_by(small_key().public_key()) for url in urls)
    assert all(f"/part-{number}?" in url for number, url in enumerate(urls))


async def test_urls_are_the_same_in_every_replica():
    paths = [f"part-{number}" for number in range(100)]

    assert await urls_of(signer(), TABLE, *paths) == await urls_of(signer(), TABLE, *paths)


async def test_as_many_sign_at_once_as_there_are_cores_and_none_on_the_event_loops_thread(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    gate, lock = threading.Event(), threading.Lock()
    threads: set[int] = set()

    def sign(message: bytes) -> bytes:
        with lock:
            threads.add(threading.get_ident())
        assert gate.wait(60)
        return message[-8:]

    one = signer(ServiceKey(email=GATEWAY, sign=sign))
    signing = [asyncio.create_task(urls_of(one, TABLE, *map(str, range(200)))) for _ in range(5)]
    await eventually_async(lambda: len(threads) == 2)
    # Enough for others to begin, if they did.
    await asyncio.sleep(0.05)
    assert len(threads) == 2
    gate.set()

    assert [len(urls) for urls in await asyncio.gather(*signing)] == [200] * 5
    assert threading.get_ident() not in threads


async def test_the_loop_goes_on_while_others_sign():
    gate = threading.Event()

    def sign(message: bytes) -> bytes:
        assert gate.wait(60)
        return message[-8:]

    one = signer(ServiceKey(email=GATEWAY, sign=sign))
    signing = asyncio.create_task(urls_of(one, TABLE, *map(str, range(200))))
    await asyncio.sleep(0)
    # It could not be reached if the loop waited for the key.
    gate.set()

    assert len(await signing) == 200


async def test_key_that_cannot_be_read_is_unavailable():
    with pytest.raises(Unavailable):
        await urls_of(RsaSigner(read_key=KeyReader(lambda: "").read, place=PLACE), TABLE, "a")


async def test_more_than_seven_days_are_refused():
    with pytest.raises(Unsupported):
        await urls_of(signer(), TABLE, "a", window=window_of(HOUR * 24 * 8))


async def test_reported_expiration_is_the_windows():
    signed = await signer().sign(TABLE, Paths.of(["a"]), WINDOW)

    assert signed.expires_at == WINDOW.expires_at
    assert (signer().cost, signer().has_sessions) == (SigningCost.PRIVATE_KEY, False)
