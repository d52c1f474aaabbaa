"""The cache of a process: made from its configuration, and put around what vendors open."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Final

from gateway.adapters.cache.drop import Drops
from gateway.adapters.cache.issuer import Shared
from gateway.adapters.cache.key import encode
from gateway.adapters.cache.replicas import Replicas
from gateway.adapters.cache.sealed import Sealed
from gateway.adapters.cache.sessions import SharedSessions
from gateway.adapters.cache.shared import SharedCache
from gateway.adapters.cache.signer import SharedUrls
from gateway.adapters.cache.storage import StorageCache, UrlParts
from gateway.adapters.cache.vault import Vault
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.storage_plan import PlannedStorage
from gateway.adapters.url_metrics import UrlMetrics
from gateway.config.faults import ConfigError, Fault
from gateway.config.redis import CacheConfig, RedisConfig, UrlCacheConfig
from gateway.domain.kept import Kept
from gateway.domain.key import Keys
from gateway.ports import Clock, utcnow

# An operator waits for an answer rather than do without.
_DROP_TIMEOUT: Final = timedelta(seconds=2)
# How long a process waits for the first successful probe before it starts without Redis.
_START_TIMEOUT: Final = timedelta(seconds=1)

Importer = Callable[[str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """What a process that signs URLs is opened with."""

    metrics: UrlMetrics
    # What URLs that lead back to the gateway are made of.
    public_url: str
    url_keys: Keys


class ProcessCache:
    """Remembers the credentials and signatures of all storages of a process, across reloads."""

    def __init__(self, shared: Shared, metrics: CredentialMetrics, urls: UrlParts | None = None) -> None:
        self._shared = shared
        self._metrics = metrics
        self._urls = urls

    def storage(self, planned: PlannedStorage) -> StorageCache:
        """Return what is remembered of a storage that is about to be opened."""
        return StorageCache(planned, self._shared, self._metrics, self._urls)

    async def stop(self) -> None:
        """End what goes on in the background, before the storages are closed."""
        if self._urls is not None:
            await self._urls.urls.flights.close()
            await self._urls.sessions.flights.close()
        await self._shared.refreshes.close()
        await self._shared.flights.close()
        if self._shared.replicas is not None:
            await self._shared.replicas.close()


@asynccontextmanager
async def open_cache(
    config: CacheConfig,
    keys: Keys,
    metrics: CredentialMetrics,
    signing: Signing | None = None,
    clock: Clock = utcnow,
) -> AsyncIterator[ProcessCache]:
    """Open the cache of a process that issues or signs; a Redis that is down is no error."""
    async with _opened(config.redis, metrics) as cache:
        replicas = None
        if cache is not None and config.redis is not None:
            sealed = Sealed(cache, Vault(keys), metrics)
            replicas = Replicas(sealed, lease_time=config.redis.lease_time)
        shared = Shared(memory=Kept(config.memory), replicas=replicas, clock=clock)
        urls = None if signing is None else url_parts(config.urls, signing, shared)
        yield ProcessCache(shared, metrics, urls)


def url_parts(config: UrlCacheConfig, signing: Signing, shared: Shared) -> UrlParts:
    """Return what the signers of a process share, beside what its issuers do."""
    urls = SharedUrls(
        memory=Kept(config.memory),
        replicas=shared.replicas,
        in_redis=config.redis,
        base=_base(signing),
        clock=shared.clock,
    )
    signing.metrics.memory = lambda: urls.memory.size
    sessions = SharedSessions(replicas=shared.replicas, clock=shared.clock)
    return UrlParts(metrics=signing.metrics, sessions=sessions, urls=urls)


@asynccontextmanager
async def open_drops(config: RedisConfig, keys: Keys, metrics: CredentialMetrics) -> AsyncIterator[Drops]:
    """Open what removes values from Redis: without Redis it removes nothing, so it waits for it."""
    timeout = max(config.timeout, _DROP_TIMEOUT)
    patient = config.model_copy(update={"timeout": timeout})
    async with open_redis(patient, metrics, start_timeout=timeout) as cache:
        yield Drops(cache, Vault(keys))


@asynccontextmanager
async def open_redis(
    config: RedisConfig,
    metrics: CredentialMetrics,
    importer: Importer = import_module,
    *,
    start_timeout: timedelta = _START_TIMEOUT,
) -> AsyncIterator[SharedCache]:
    """Open the shared cache of a configuration; its client is imported only now."""
    try:
        importer("redis")
    except ImportError as exc:
        message = (
            "needs the package redis, which is not installed: pip install '.[redis]' in a checkout of Sluice"
        )
        raise ConfigError([Fault(path="cache.redis", message=message)]) from exc
    from gateway.adapters.cache.redis_cache import RedisCache  # noqa: PLC0415 -- as above
    from gateway.adapters.cache.redis_client import redis_client  # noqa: PLC0415

    async with (
        redis_client(config) as client,
        RedisCache(
            client,
            metrics,
            key_prefix=config.key_prefix,
            timeout=config.timeout,
            start_timeout=start_timeout,
        ) as cache,
    ):
        yield cache


def _opened(
    config: RedisConfig | None, metrics: CredentialMetrics
) -> AbstractAsyncContextManager[SharedCache | None]:
    return nullcontext() if config is None else open_redis(config, metrics)


def _base(signing: Signing) -> bytes:
    key = signing.url_keys.current
    return hashlib.sha256(encode(signing.public_url, key.id, key.mac(b"cache: urls"))).digest()
