"""Microseconds a URL: signed again, remembered in the process, and found in Redis, for each cost of signing.

What a signature costs decides whether another replica's is worth a way to Redis. The Redis is a Valkey on
loopback, which is as near as one can be; CPU is that of the gateway's process alone. What a page costs that
is found nowhere shows what looking and storing add. Rounds are interleaved: a busy moment of the machine
falls on all of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from prometheus_client import CollectorRegistry

from bench.machine import describe_machine
from gateway.adapters.cache.process import Signing, open_cache
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.storage_plan import PlannedStorage
from gateway.adapters.url_metrics import UrlMetrics
from gateway.config.redis import CacheConfig, RedisConfig, UrlCacheConfig, UrlsInRedis
from gateway.domain.file_path import Paths
from gateway.domain.key import Key, Keys
from gateway.domain.location import Location, parse_location
from gateway.domain.window import URL_PARTS, Window, window_at
from gateway.ports import Signatures, Signer, SigningCost, Storage
from tests.stores.redis import Server, running_server, valkey_program

RESULTS = Path(__file__).parent / "results"
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
WINDOW = window_at(NOON, timedelta(hours=1), URL_PARTS, b"orders")
TABLE = parse_location("s3://lake/sales/orders")
KEYS = Keys(current=Key(id="k1", secret=b"s" * 32))
AT_ONCE = 16
# A page, and pages so small that the way to Redis shows.
SIZES = (1000, 300, 100)
CALL_SECONDS = 0.02

SIGNED, MEMORY, REDIS, PIPELINED, MISSED = (
    "signed again",
    "from memory",
    "from Redis",
    f"from Redis, {AT_ONCE} pages at once",
    "found nowhere, and stored",
)


class HashSigner:
    """Two hashes a URL, with states that are made once, as an S3 signer's."""

    cost = SigningCost.HASH
    has_sessions = False
    # Of a page of 1,000 files.
    rounds = 40

    def __init__(self) -> None:
        self._canonical = hashlib.sha256(b"GET\n/sales/orders/" + b"q" * 400)
        self._key = Key(id="", secret=b"d" * 32)

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        digests = []
        for path in paths.split():
            request = self._canonical.copy()
            request.update(path)
            digests.append(request.hexdigest().encode())
        return _signatures([mac.hex() for mac in self._key.macs(b"AWS4-HMAC-SHA256\n" + b"s" * 50, digests)])


class RsaSigner:
    """An operation with a private key of 2,048 bits for each URL."""

    cost = SigningCost.PRIVATE_KEY
    has_sessions = False
    rounds = 3

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        return _signatures(
            [self._key.sign(path, padding.PKCS1v15(), hashes.SHA256()).hex() for path in paths.split()]
        )


class CallSigner:
    """A provider that takes its time for a whole page."""

    cost = SigningCost.CALL
    has_sessions = False
    rounds = 10

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        await asyncio.sleep(CALL_SECONDS)
        return _signatures([hashlib.sha512(path).hexdigest() * 4 for path in paths.split()])


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one URL, in microseconds."""

    cpu: float
    wall: float


BenchSigner = HashSigner | RsaSigner | CallSigner
Work = Callable[[], Awaitable[object]]


def main() -> None:
    lines = [
        "# Remembered signatures",
        "",
        "Microseconds a URL, best of interleaved rounds. Valkey on loopback, values sealed.",
        f"{describe_machine()}.",
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(valkey_program(), Path(folder)) as server,
    ):
        signers: dict[str, tuple[BenchSigner, Sequence[int]]] = {
            "A hash (S3, Azure, local files)": (HashSigner(), SIZES),
            "A private key (RSA-2048)": (RsaSigner(), (1000,)),
            f"A call of {CALL_SECONDS * 1000:.0f} ms": (CallSigner(), (1000,)),
        }
        for name, (signer, sizes) in signers.items():
            for size in sizes:
                measured = asyncio.run(_measure(signer, size, server.url))
                lines += _table(f"{name}, pages of {size:,} files", measured)
            server.client().flushall()
        lines += _memory_table({name: _memory(signer, server) for name, (signer, _) in signers.items()})
    print("\n".join(lines))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "url_cache.md").write_text("\n".join(lines) + "\n")


def _table(title: str, measured: Mapping[str, Cost]) -> list[str]:
    again = measured[SIGNED]
    return [
        "",
        f"| {title} | CPU us | to signing again | wall us | to signing again |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {cost.cpu:.2f} | {cost.cpu / again.cpu:.3f} "
            f"| {cost.wall:.2f} | {cost.wall / again.wall:.3f} |"
            for name, cost in measured.items()
        ),
    ]


def _memory_table(measured: Mapping[str, float]) -> list[str]:
    return [
        "",
        "| In Redis, pages of 1,000 files | bytes a URL | a million URLs |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {size:.0f} | {size:.0f} MB |" for name, size in measured.items()),
    ]


def _memory(signer: BenchSigner, server: Server) -> float:
    """Return how many bytes a remembered signature takes of Redis, with its share of keys and sealing."""
    client = server.client()
    client.flushall()
    before = int(client.info("memory")["used_memory"])
    asyncio.run(_store(signer, server.url))
    used = int(client.info("memory")["used_memory"]) - before
    client.flushall()
    return used / (AT_ONCE * SIZES[0])


async def _store(signer: BenchSigner, url: str) -> None:
    async with _opened(signer, url, memory=0, in_redis=UrlsInRedis.ALWAYS) as sharing:
        await _all(sharing, [_page(SIZES[0], number) for number in range(AT_ONCE)])
        await _stored()


async def _measure(signer: BenchSigner, size: int, url: str) -> dict[str, Cost]:
    rounds = max(signer.rounds, signer.rounds * 200 // size)
    pages = [_page(size, number) for number in range(AT_ONCE)]
    async with (
        _opened(signer, url, memory=0, in_redis=UrlsInRedis.NEVER) as alone,
        _opened(signer, url, memory=2**28, in_redis=UrlsInRedis.NEVER) as remembering,
        _opened(signer, url, memory=0, in_redis=UrlsInRedis.ALWAYS) as sharing,
    ):
        for page in pages:
            await remembering.sign(TABLE, page, WINDOW)
            await sharing.sign(TABLE, page, WINDOW)
        await _stored()
        unknown = iter([_page(size, AT_ONCE + number) for number in range(rounds)])
        works: dict[str, tuple[int, Work]] = {
            SIGNED: (1, lambda: alone.sign(TABLE, pages[0], WINDOW)),
            MEMORY: (1, lambda: remembering.sign(TABLE, pages[0], WINDOW)),
            REDIS: (1, lambda: sharing.sign(TABLE, pages[0], WINDOW)),
            PIPELINED: (AT_ONCE, lambda: _all(sharing, pages)),
            MISSED: (1, lambda: _missed(sharing, next(unknown))),
        }
        return await _best(works, rounds, size)


async def _best(works: Mapping[str, tuple[int, Work]], rounds: int, size: int) -> dict[str, Cost]:
    """Return what a URL takes of each, in its best round: others' work only ever adds to it."""
    best = {name: Cost(float("inf"), float("inf")) for name in works}
    for _ in range(rounds):
        for name, (count, work) in works.items():
            cpu, wall = time.process_time(), time.perf_counter()
            await work()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            each = Cost(cpu / (count * size) * 1e6, wall / (count * size) * 1e6)
            best[name] = Cost(min(best[name].cpu, each.cpu), min(best[name].wall, each.wall))
    return best


async def _all(signer: Signer, pages: list[Paths]) -> None:
    await asyncio.gather(*(signer.sign(TABLE, page, WINDOW) for page in pages))


async def _missed(signer: Signer, page: Paths) -> None:
    await signer.sign(TABLE, page, WINDOW)
    await _stored()


async def _stored() -> None:
    """Wait for what goes on when an answer is out already."""
    if under_way := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(under_way)


@asynccontextmanager
async def _opened(signer: Signer, url: str, *, memory: int, in_redis: UrlsInRedis) -> AsyncIterator[Signer]:
    config = CacheConfig(
        urls=UrlCacheConfig(memory=memory, redis=in_redis),
        redis=RedisConfig(url=url, timeout=timedelta(seconds=5)),
    )
    registry = CollectorRegistry()
    signing = Signing(metrics=UrlMetrics(registry), public_url="https://share.example", url_keys=KEYS)
    planned = PlannedStorage(name="lake", prefix=parse_location("s3://lake"), vendor=type(signer).__name__)
    storage = Storage(name="lake", prefix=planned.prefix, signer=signer)
    async with open_cache(config, KEYS, CredentialMetrics(registry), signing, lambda: NOON) as cache:
        wrapped = cache.storage(planned).wrap(storage).signer
        assert wrapped is not None
        yield wrapped
        await cache.stop()


def _page(size: int, number: int) -> Paths:
    names = (
        f"date%3D2021-04-{n % 28 + 1:02d}/part-{n:05d}-8b0086f2-7e5b-4d4c-9d1f-{number:012d}.c000.parquet"
        for n in range(size)
    )
    return replace(Paths.of(names), is_segment=True)


def _signatures(signatures: list[str]) -> Signatures:
    return Signatures(
        origin="https://lake.s3.eu-central-1.amazonaws.com/sales/orders/",
        query="X-Amz-Algorithm=AWS4-HMAC-SHA256&" + "q" * 300,
        signatures="\n".join(signatures).encode(),
        expires_at=WINDOW.expires_at,
    )


if __name__ == "__main__":
    main()
