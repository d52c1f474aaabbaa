"""The contract of the shared cache, over the fake and over real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.cache.process import open_redis
from gateway.adapters.cache.shared import SharedCache
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.config.redis import RedisConfig, SentinelConfig
from tests.components import REDIS, VALKEY
from tests.contract.cache import Pass, SharedCacheContract, let_pass
from tests.fakes.shared_cache import FakeSharedCache
from tests.stores.redis import (
    SERVICE,
    redis_program,
    running_cluster,
    running_sentinels,
    running_server,
    valkey_program,
)
from tests.waiting import eventually_async

__all__ = ["let_pass"]

# On a busy machine an operation may take longer than a request would wait for it.
PATIENT = timedelta(seconds=30)
PROGRAMS = [
    pytest.param(valkey_program, id="valkey", marks=[pytest.mark.component(VALKEY), pytest.mark.slow]),
    pytest.param(redis_program, id="redis", marks=[pytest.mark.component(REDIS), pytest.mark.system]),
]


class TestFake(SharedCacheContract):
    @pytest.fixture
    def clock(self) -> list[datetime]:
        return [datetime(2026, 6, 1, 12, tzinfo=UTC)]

    @pytest.fixture
    def cache(self, clock) -> SharedCache:
        return FakeSharedCache(lambda: clock[0])

    @pytest.fixture
    def let_pass(self, clock) -> Pass:
        async def move(span: timedelta) -> None:
            clock[0] += span

        return move


@pytest.fixture(scope="module", params=PROGRAMS)
def server(request, tmp_path_factory) -> Iterator[object]:
    with running_server(request.param(), tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="module", params=PROGRAMS)
def sentinels(request, tmp_path_factory) -> Iterator[object]:
    with running_sentinels(request.param(), tmp_path_factory.mktemp("redis")) as servers:
        yield servers


@pytest.fixture(scope="module", params=PROGRAMS)
def nodes(request, tmp_path_factory) -> Iterator[object]:
    with running_cluster(request.param(), tmp_path_factory.mktemp("redis")) as nodes:
        yield nodes


async def opened(config: RedisConfig) -> AsyncIterator[SharedCache]:
    registry = CollectorRegistry()
    async with open_redis(config, CredentialMetrics(registry)) as cache:
        await eventually_async(lambda: registry.get_sample_value("sluice_cache_redis_up"), "Redis is used")
        yield cache


class TestStandalone(SharedCacheContract):
    @pytest.fixture
    async def cache(self, server) -> AsyncIterator[SharedCache]:
        server.client().flushall()
        async for cache in opened(RedisConfig(url=server.url, timeout=PATIENT)):
            yield cache


class TestSentinel(SharedCacheContract):
    @pytest.fixture
    async def cache(self, sentinels) -> AsyncIterator[SharedCache]:
        sentinels.primary.client().flushall()
        sentinel = SentinelConfig(addresses=(sentinels.address,), service=SERVICE)
        async for cache in opened(RedisConfig(sentinel=sentinel, timeout=PATIENT)):
            yield cache


class TestCluster(SharedCacheContract):
    @pytest.fixture
    async def cache(self, nodes) -> AsyncIterator[SharedCache]:
        for node in nodes:
            node.client().flushall()
        async for cache in opened(RedisConfig(url=nodes[0].url, cluster=True, timeout=PATIENT)):
            yield cache
