from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.cache.issuer import CachedIssuer
from gateway.adapters.cache.process import open_cache, open_drops, open_redis
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.config.faults import ConfigError
from gateway.config.redis import CacheConfig, RedisConfig
from gateway.domain.location import parse_location
from gateway.ports import Storage
from tests.unit.adapters.cache.doubles import KEYS, Provider, Time, planned, scope

# Nobody listens there, and a unit test may open no other socket.
NOWHERE = "unix:///nonexistent/redis.sock"


@pytest.fixture
def metrics():
    return CredentialMetrics(CollectorRegistry())


async def test_an_issuer_is_wrapped_and_the_rest_of_a_storage_left_as_it_is(metrics):
    provider = Provider(Time())
    storage = Storage(name="lake", prefix=parse_location("s3://lake"), issuer=provider, allow_root=True)
    async with open_cache(CacheConfig(), KEYS, metrics) as cache:
        wrapped = cache.wrap(planned(), storage)
        assert isinstance(wrapped.issuer, CachedIssuer)
        assert (wrapped.name, wrapped.prefix, wrapped.allow_root) == ("lake", storage.prefix, True)


async def test_a_storage_without_an_issuer_is_left_as_it_is(metrics):
    storage = Storage(name="lake", prefix=parse_location("s3://lake"))
    async with open_cache(CacheConfig(), KEYS, metrics) as cache:
        assert cache.wrap(planned(), storage) is storage


async def test_a_redis_that_is_down_at_the_start_is_no_error(metrics, caplog):
    time = Time()
    provider = Provider(time)
    storage = Storage(name="lake", prefix=parse_location("s3://lake"), issuer=provider)
    config = CacheConfig(redis=RedisConfig(url=NOWHERE))
    async with open_cache(config, KEYS, metrics, time.clock) as cache:
        issuer = cache.wrap(planned(), storage).issuer
        assert issuer is not None
        await issuer.issue(scope())
        await cache.stop()
    assert caplog.text.count("redis is out of order") == 1


async def test_drops_say_when_redis_is_down(metrics):
    async with open_drops(RedisConfig(url=NOWHERE), KEYS, metrics) as drops:
        assert await drops.drop_recipient("ann") is None


async def test_a_missing_package_is_a_fault_that_says_what_to_install(metrics):
    def missing(name: str) -> object:
        raise ImportError(name=name)

    with pytest.raises(ConfigError, match=r"cache\.redis: needs the package redis.*sluice-gateway\[redis\]"):
        async with open_redis(RedisConfig(url=NOWHERE), metrics, missing):
            pass
