from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry
from redis import exceptions as failures

from gateway.adapters.cache.redis_cache import RedisCache, reason_of
from gateway.adapters.cache.shared import Claim, ClaimState, Lease
from gateway.adapters.credential_metrics import CredentialMetrics

LEASE = Lease(name="n", token=b"t")
SECOND = timedelta(seconds=1)
OUT = Claim(ClaimState.OUT)


class Client:
    """Takes commands and fails them as it is told."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.answer: object = None
        self.commands = 0

    async def set(self, *arguments: object, **options: object) -> bool:
        self.commands += 1
        if self.failure is not None:
            raise self.failure
        return True

    async def eval(self, *arguments: object) -> object:
        await self.set()
        return self.answer

    async def zrange(self, *arguments: object) -> object:
        await self.set()
        return self.answer

    def pipeline(self, *, transaction: bool) -> Client:
        return self

    def get(self, name: str) -> None:
        pass

    async def execute(self, *, raise_on_error: bool = True) -> object:
        await self.set()
        return self.answer


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def client():
    return Client()


@pytest.fixture
async def cache(client, registry):
    metrics = CredentialMetrics(registry)
    async with RedisCache(client, metrics, key_prefix="p:", timeout=timedelta(milliseconds=20)) as cache:
        yield cache


def errors(registry: CollectorRegistry, reason: str) -> float:
    return registry.get_sample_value("sluice_cache_redis_errors_total", {"reason": reason}) or 0


REASONS = [
    (failures.TimeoutError("t"), "timeout"),
    (TimeoutError(), "timeout"),
    (failures.ConnectionError("c"), "connection"),
    (ConnectionResetError(), "connection"),
    (failures.BusyLoadingError("l"), "loading"),
    (failures.AuthenticationError("a"), "authentication"),
    (failures.NoPermissionError("a"), "authentication"),
    (failures.ResponseError("NOAUTH Authentication required."), "authentication"),
    (failures.ReadOnlyError("r"), "read_only"),
    (failures.ResponseError("READONLY You can't write against a read only replica. script: x"), "read_only"),
    (failures.OutOfMemoryError("o"), "full"),
    (failures.ResponseError("OOM command not allowed when used memory > 'maxmemory'. script: x"), "full"),
    (failures.ClusterDownError("CLUSTERDOWN"), "cluster"),
    (failures.SlotNotCoveredError("s"), "cluster"),
    (failures.RedisClusterException("r"), "cluster"),
    (failures.MaxConnectionsError("m"), "connection"),
    (failures.ResponseError("WRONGTYPE"), "response"),
    (failures.InvalidResponse("i"), "response"),
]


@pytest.mark.parametrize(("failure", "reason"), REASONS)
async def test_whatever_fails_is_a_miss_with_its_reason(cache, client, registry, failure, reason):
    client.failure = failure
    assert reason_of(failure) == reason
    assert await cache.claim(LEASE, SECOND) == OUT
    assert await cache.find(["n"]) is None
    assert await cache.put("n", b"v", SECOND) is False
    assert await cache.publish(LEASE, b"v", SECOND) is False
    assert await cache.drop("i") is None
    await cache.release(LEASE)
    await cache.renew(LEASE, SECOND)
    await cache.enlist("i", "n", SECOND)
    assert errors(registry, reason) >= 1


@pytest.mark.parametrize(("failure", "reason"), REASONS)
async def test_it_is_left_alone_unless_one_key_may_be_to_blame(cache, client, failure, reason):
    client.failure = failure
    for _ in range(6):
        await cache.claim(LEASE, SECOND)
    assert cache.is_out is (reason not in {"full", "response"})
    before = client.commands
    await cache.claim(LEASE, SECOND)
    assert (client.commands == before) is cache.is_out


async def test_one_that_is_slow_is_a_miss(cache, client, registry):
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    client.eval = never
    assert await cache.claim(LEASE, SECOND) == OUT
    assert errors(registry, "timeout") == 1


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        (b"value", Claim(ClaimState.FOUND, b"value")),
        (1, Claim(ClaimState.MINE)),
        (0, Claim(ClaimState.TAKEN)),
        (7, OUT),
        (None, OUT),
        ([b"x"], OUT),
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_miss(cache, client, answer, claim):
    client.answer = answer
    assert await cache.claim(LEASE, SECOND) == claim


async def test_a_value_of_another_type_is_none_and_leaves_the_others(cache, client):
    client.answer = [b"a", failures.ResponseError("WRONGTYPE"), None, 3]
    assert await cache.find(list("abcd")) == [b"a", None, None, None]


async def test_a_failure_of_one_answer_that_concerns_all_is_a_miss_of_all(cache, client, registry):
    client.answer = [b"a", failures.ClusterDownError("CLUSTERDOWN")]
    assert await cache.find(list("ab")) is None
    assert errors(registry, "cluster") == 1


async def test_a_value_on_its_way_does_not_print():
    assert "secret" not in repr(Claim(ClaimState.FOUND, b"secret"))
    assert "secret" not in repr(Lease(name="n", token=b"t", seen=b"secret"))
