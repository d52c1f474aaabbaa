from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.cache.breaker import Breaker
from gateway.adapters.cache.issuer import CachedIssuer
from gateway.adapters.cache.process import Signing, open_cache, open_drops, open_redis
from gateway.adapters.cache.sessions import CachedSessions
from gateway.adapters.cache.signer import CachedSigner
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.url_metrics import UrlMetrics
from gateway.config.faults import ConfigError
from gateway.config.redis import CacheConfig, RedisConfig, UrlCacheConfig
from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.ports import Storage
from tests.fakes.signer import FakeSigner
from tests.unit.adapters.cache.doubles import KEYS, NOON, WINDOW, Provider, Time, planned, scope

# Nobody listens there, and a unit test may open no other socket.
NOWHERE = "unix:///nonexistent/redis.sock"
# The start waits this long for the first success, which never comes from nowhere.


def signing(registry: CollectorRegistry | None = None) -> Signing:
    metrics = UrlMetrics(registry or CollectorRegistry())
    return Signing(metrics=metrics, public_url="https://share.example", url_keys=KEYS)


@pytest.fixture
def metrics():
    return CredentialMetrics(CollectorRegistry())


async def test_an_issuer_is_wrapped_and_the_rest_of_a_storage_left_as_it_is(metrics):
    provider = Provider(Time())
    storage = Storage(name="lake", prefix=parse_location("s3://lake"), issuer=provider, allow_root=True)
    async with open_cache(CacheConfig(), KEYS, metrics) as cache:
        wrapped = cache.storage(planned()).wrap(storage)
        assert isinstance(wrapped.issuer, CachedIssuer)
        assert (wrapped.name, wrapped.prefix, wrapped.allow_root) == ("lake", storage.prefix, True)


async def test_a_storage_that_neither_issues_nor_signs_is_left_as_it_is(metrics):
    storage = Storage(name="lake", prefix=parse_location("s3://lake"))
    async with open_cache(CacheConfig(), KEYS, metrics, signing()) as cache:
        assert cache.storage(planned()).wrap(storage) == storage


async def test_a_process_that_signs_has_sessions_and_a_signer_that_remembers(metrics):
    storage = Storage(name="lake", prefix=parse_location("s3://lake"), signer=FakeSigner())
    async with open_cache(CacheConfig(), KEYS, metrics, signing()) as cache:
        remembered = cache.storage(planned())
        assert isinstance(remembered.sessions, CachedSessions)
        assert isinstance(remembered.wrap(storage).signer, CachedSigner)
        await cache.stop()


async def test_a_process_that_only_issues_has_no_sessions_and_leaves_signers_as_they_are(metrics):
    storage = Storage(name="lake", prefix=parse_location("s3://lake"), signer=FakeSigner())
    async with open_cache(CacheConfig(), KEYS, metrics) as cache:
        remembered = cache.storage(planned())
        assert remembered.sessions is None
        assert remembered.wrap(storage).signer is storage.signer


async def test_how_much_memory_signatures_take_is_told(metrics):
    registry = CollectorRegistry()
    config = CacheConfig(urls=UrlCacheConfig(memory=100_000))
    storage = Storage(name="lake", prefix=parse_location("s3://lake"), signer=FakeSigner())
    async with open_cache(config, KEYS, metrics, signing(registry), lambda: NOON) as cache:
        signer = cache.storage(planned()).wrap(storage).signer
        assert signer is not None
        assert registry.get_sample_value("sluice_url_memory_bytes") == 0
        await signer.sign(parse_location("s3://lake/t"), Paths(b"a\nb", is_segment=True), WINDOW)
        taken = registry.get_sample_value("sluice_url_memory_bytes")
        assert taken is not None
        assert 0 < taken < 100_000


async def test_a_redis_that_is_down_at_the_start_is_no_error(metrics, caplog):
    time = Time()
    provider = Provider(time)
    storage = Storage(name="lake", prefix=parse_location("s3://lake"), issuer=provider)
    config = CacheConfig(redis=RedisConfig(url=NOWHERE))
    async with open_cache(config, KEYS, metrics, clock=time.clock) as cache:
        issuer = cache.storage(planned()).wrap(storage).issuer
        assert issuer is not None
        await issuer.issue(scope())
        await cache.stop()
    assert caplog.text.count("redis is out of order") == 1


@pytest.mark.parametrize(("timeout", "waited"), [("100ms", 2), ("30s", 30)])
async def test_drops_without_redis_wait_for_it_as_long_as_an_operation_may_take(
    metrics, monkeypatch, timeout, waited
):
    waits = []

    async def start(_: Breaker, patience: float) -> None:
        waits.append(patience)

    monkeypatch.setattr(Breaker, "start", start)
    config = RedisConfig.model_validate({"url": NOWHERE, "timeout": timeout})
    async with open_drops(config, KEYS, metrics) as drops:
        assert await drops.drop_recipient("ann") is None
    assert waits == [waited]


async def test_a_missing_package_is_a_fault_that_says_what_to_install(metrics):
    def missing(name: str) -> object:
        raise ImportError(name=name)

    with pytest.raises(ConfigError, match=r"cache\.redis: needs the package redis.*'\.\[redis\]'"):
        async with open_redis(RedisConfig(url=NOWHERE), metrics, missing):
            pass
