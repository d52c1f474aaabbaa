"""The cache of a process: made from its configuration, and put around what vendors open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from typing import Final

from gateway.adapters.cache.backoff import Backoff
from gateway.adapters.cache.drop import Drops
from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.issuer import CachedIssuer, Shared
from gateway.adapters.cache.mint import Mint
from gateway.adapters.cache.replicas import Replicas
from gateway.adapters.cache.shared import SharedCache
from gateway.adapters.cache.vault import Vault
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.storage_plan import PlannedStorage
from gateway.config.faults import ConfigError, Fault
from gateway.config.redis import CacheConfig, RedisConfig
from gateway.domain.kept import Kept
from gateway.domain.key import Keys
from gateway.ports import Clock, Storage, utcnow

# An operator waits for an answer rather than do without.
_DROP_TIMEOUT: Final = timedelta(seconds=2)

Importer = Callable[[str], object]


class CredentialCache:
    """Remembers the credentials of all storages of a process, across reloads."""

    def __init__(self, shared: Shared, metrics: CredentialMetrics) -> None:
        self._shared = shared
        self._metrics = metrics

    def wrap(self, planned: PlannedStorage, storage: Storage) -> Storage:
        """Return the storage with an issuer that remembers."""
        if storage.issuer is None:
            return storage
        shared, series = self._shared, self._metrics.storage(planned.name)
        mint = Mint(
            storage.issuer,
            series=series,
            backoff=Backoff(shared.chance, shared.monotonic),
            clock=shared.clock,
            monotonic=shared.monotonic,
        )
        issuer = CachedIssuer(
            mint,
            shared,
            fingerprint=Fingerprint(planned, shared.monotonic),
            series=series,
            names_recipients=storage.issuer.names_recipients,
        )
        return replace(storage, issuer=issuer)

    async def stop(self) -> None:
        """End what goes on in the background, before the storages are closed."""
        await self._shared.refreshes.close()
        await self._shared.flights.close()


@asynccontextmanager
async def open_cache(
    config: CacheConfig, keys: Keys, metrics: CredentialMetrics, clock: Clock = utcnow
) -> AsyncIterator[CredentialCache]:
    """Open the cache of a process that issues or signs; a Redis that is down is no error."""
    async with _opened(config.redis, metrics) as cache:
        replicas = None
        if cache is not None and config.redis is not None:
            replicas = Replicas(cache, Vault(keys), metrics, lease_time=config.redis.lease_time)
        yield CredentialCache(Shared(memory=Kept(config.memory), replicas=replicas, clock=clock), metrics)


@asynccontextmanager
async def open_drops(config: RedisConfig, keys: Keys, metrics: CredentialMetrics) -> AsyncIterator[Drops]:
    """Open what removes values from Redis."""
    patient = config.model_copy(update={"timeout": max(config.timeout, _DROP_TIMEOUT)})
    async with open_redis(patient, metrics) as cache:
        yield Drops(cache, Vault(keys))


@asynccontextmanager
async def open_redis(
    config: RedisConfig, metrics: CredentialMetrics, importer: Importer = import_module
) -> AsyncIterator[SharedCache]:
    """Open the shared cache of a configuration; its client is imported only now."""
    try:
        importer("redis")
    except ImportError as exc:
        message = "needs the package redis, which is not installed: pip install 'sluice-gateway[redis]'"
        raise ConfigError([Fault(path="cache.redis", message=message)]) from exc
    from gateway.adapters.cache.redis_cache import RedisCache  # noqa: PLC0415 -- as above
    from gateway.adapters.cache.redis_client import redis_client  # noqa: PLC0415

    async with (
        redis_client(config) as client,
        RedisCache(client, metrics, key_prefix=config.key_prefix, timeout=config.timeout) as cache,
    ):
        yield cache


def _opened(
    config: RedisConfig | None, metrics: CredentialMetrics
) -> AbstractAsyncContextManager[SharedCache | None]:
    return nullcontext() if config is None else open_redis(config, metrics)
