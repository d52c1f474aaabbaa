"""Opens the storages of a process that signs URLs or issues credentials, behind its cache."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from prometheus_client import CollectorRegistry

from gateway.adapters.cache.process import Signing, open_cache
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.storage_check import FindVendor
from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.adapters.url_metrics import UrlMetrics
from gateway.config.schema import Config
from gateway.domain.key import Keys


@asynccontextmanager
async def cached_storages(
    config: Config,
    settings: StorageProcess,
    sealing: Keys,
    registry: CollectorRegistry,
    *,
    find: FindVendor,
) -> AsyncIterator[OpenStorages]:
    """Open the storages of a configuration, and cache the credentials and signatures that they return."""
    metrics = CredentialMetrics(registry)
    async with open_cache(config.cache, sealing, metrics, _signing(settings, registry)) as cache:
        settings = replace(settings, metrics=metrics, remember=cache.storage)
        async with OpenStorages(config, settings, find=find) as storages:
            try:
                yield storages
            finally:
                # Background calls to a storage end before the storage is closed.
                await cache.stop()


def _signing(settings: StorageProcess, registry: CollectorRegistry) -> Signing | None:
    if settings.url_keys is None:
        return None
    metrics = UrlMetrics(registry)
    return Signing(metrics=metrics, public_url=settings.public_url, url_keys=settings.url_keys)
