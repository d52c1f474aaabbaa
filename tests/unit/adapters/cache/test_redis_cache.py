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
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
# The start waits this long for the first success, where none comes.
SHORT = timedelta(milliseconds=50)
OUT = Claim(ClaimState.OUT)


class Pool:
    """Counts how often its connections are let go of, which may fail."""

    def __init__(self) -> None:
        self.disconnects = 0
        self.failure: Exception | None = None

    async def disconnect(self, *, inuse_connections: bool) -> None:
        self.disconnects += 1
        if self.failure is not None:
            raise self.failure


class Client:
    """Takes commands and fails them as it is told."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.answer: object = None
        self.commands = 0
        self.deleted: list[str] = []
        self.connection_pool = Pool()

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

    async def zrem(self, *arguments: object) -> None:
        await self.set()

    def delete(self, name: str) -> None:
        self.deleted.append(name)

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
    async with RedisCache(client, metrics, key_prefix="p:", timeout=MINUTE, start_timeout=MINUTE) as cache:
        yield cache


@pytest.fixture
def is_left_alone(registry):
    return lambda: registry.get_sample_value("sluice_cache_redis_breaker_open") == 1


def errors(registry: CollectorRegistry, reason: str) -> float:
    return registry.get_sample_value("sluice_cache_redis_errors_total", {"reason": reason}) or 0


# What the client raises that it does not foresee, by the answer that it cannot read.
NONSENSE = [
    ValueError("invalid literal for int() with base 10: b'abc'"),
    # The words are the server's, and mean nothing.
    ValueError("invalid literal for int() with base 10: b'OOM'"),
    ValueError("Separator is not found, and chunk exceed the limit"),
    RecursionError("maximum recursion depth exceeded"),
    AttributeError("'int' object has no attribute 'decode'"),
    EOFError(),
]
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
    (failures.InvalidResponse("i"), "connection"),
    *((failure, "connection") for failure in NONSENSE),
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
async def test_it_is_left_alone_unless_one_key_may_be_to_blame(cache, client, is_left_alone, failure, reason):
    client.failure = failure
    for _ in range(6):
        await cache.claim(LEASE, SECOND)
    assert is_left_alone() is (reason not in {"full", "response"})
    before = client.commands
    await cache.claim(LEASE, SECOND)
    assert (client.commands == before) is is_left_alone()


@pytest.mark.parametrize("failure", NONSENSE)
@pytest.mark.parametrize("is_closed_well", [True, False])
async def test_after_nonsense_connections_are_let_go_of(cache, client, failure, is_closed_well):
    client.failure = failure
    client.connection_pool.failure = None if is_closed_well else failure
    assert await cache.claim(LEASE, SECOND) == OUT
    assert client.connection_pool.disconnects == 1


async def test_after_a_refusal_they_are_kept(cache, client):
    client.failure = failures.ResponseError("WRONGTYPE")
    assert await cache.claim(LEASE, SECOND) == OUT
    assert client.connection_pool.disconnects == 0


@pytest.mark.parametrize("failure", NONSENSE)
async def test_nonsense_from_the_start_is_no_error_and_neither_is_the_end(client, registry, failure):
    client.failure = client.connection_pool.failure = failure
    metrics = CredentialMetrics(registry)
    async with RedisCache(client, metrics, key_prefix="p:", timeout=SECOND, start_timeout=SHORT) as cache:
        assert await cache.find(["n"]) is None
        assert client.commands >= 1
    assert errors(registry, "connection") >= 1
    assert registry.get_sample_value("sluice_cache_redis_up") == 0


async def test_it_is_used_again_when_sense_comes_back(client, registry):
    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        woken.append(seconds)
        if len(woken) == 3:
            client.failure = None
        await asyncio.sleep(0)

    client.failure = RecursionError()
    metrics = CredentialMetrics(registry)
    async with RedisCache(
        client, metrics, key_prefix="p:", timeout=SECOND, start_timeout=MINUTE, sleep=sleep
    ) as cache:
        await cache.put("n", b"v", SECOND)
        assert len(woken) == 3
        assert registry.get_sample_value("sluice_cache_redis_up") == 1
        assert await cache.put("n", b"v", SECOND) is True


async def test_one_that_is_slow_is_a_miss(client, registry):
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    client.eval = never
    metrics, timeout = CredentialMetrics(registry), timedelta(milliseconds=10)
    async with RedisCache(client, metrics, key_prefix="p:", timeout=timeout, start_timeout=MINUTE) as cache:
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
async def test_an_answer_that_makes_no_sense_is_a_miss(cache, client, registry, answer, claim):
    client.answer = answer
    assert await cache.claim(LEASE, SECOND) == claim
    assert errors(registry, "response") == (claim == OUT and answer is not None)


@pytest.mark.parametrize("answer", [b"OK", [b"n"], 0, None, 7])
async def test_what_is_not_known_to_be_stored_is_not(cache, client, answer):
    client.answer = answer
    assert await cache.publish(LEASE, b"v", SECOND) is False


@pytest.mark.parametrize("answer", [b"OK", 7, [1, 2], [b"n", None], {b"n": 1}])
async def test_a_list_to_drop_that_makes_no_sense_is_a_failure(cache, client, registry, answer):
    client.answer = answer
    assert await cache.drop("i") is None
    assert errors(registry, "response") == 1
    assert client.deleted == []


async def test_a_name_on_a_list_that_is_not_ours_keeps_none_of_ours_from_being_dropped(cache, client):
    client.answer = [b"\xff\xfe", b"n"]
    assert await cache.drop("i") == 2
    assert client.deleted[2:] == ["p:{n}:v", "p:{n}:l"]


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
