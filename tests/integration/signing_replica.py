"""A replica that signs, its cache over a real Redis, before a signer whose URLs can be verified."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from gateway.adapters.cache.process import Signing, open_cache
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.storage_plan import PlannedStorage
from gateway.adapters.url_metrics import UrlMetrics
from gateway.config.redis import CacheConfig, RedisConfig, UrlCacheConfig
from gateway.domain.file_path import Paths
from gateway.domain.key import Keys
from gateway.domain.location import parse_location
from gateway.domain.window import URL_PARTS, Window, window_at
from gateway.ports import Signer, SigningCost, Storage
from tests.fakes.hmac_signer import HmacSigner, is_genuine, urls_of
from tests.integration.replica import KEYS, LIFE, NOW, PATIENT, PREFIX
from tests.waiting import eventually_async

WINDOW: Window = window_at(NOW, LIFE, URL_PARTS, b"lake")
FILES = 200


@dataclass
class SigningReplica:
    signer: Signer
    vendor: HmacSigner
    registry: CollectorRegistry

    async def urls(self, page: int = 0, table: str = "orders") -> list[str]:
        """Return the URLs of a page of a table."""
        paths = page_of(page)
        signatures = await self.signer.sign(parse_location(f"s3://lake/{table}"), paths, WINDOW)
        return urls_of(paths, signatures)

    def served(self, source: str) -> float:
        return self._value("sluice_url_signatures_total", source=source)

    def errors(self, reason: str) -> float:
        value = self.registry.get_sample_value("sluice_cache_redis_errors_total", {"reason": reason})
        return value or 0.0

    @property
    def is_up(self) -> bool:
        return self.registry.get_sample_value("sluice_cache_redis_up") == 1

    def _value(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, {"storage": "lake", **labels}) or 0.0


@asynccontextmanager
async def signing_replica(
    cost: SigningCost = SigningCost.PRIVATE_KEY,
    *,
    has_sessions: bool = False,
    keys: Keys = KEYS,
    urls: dict[str, Any] | None = None,
    **redis: Any,
) -> AsyncIterator[SigningReplica]:
    """Run the cache of one replica."""
    registry = CollectorRegistry()
    config = CacheConfig(
        urls=UrlCacheConfig.model_validate(urls or {}),
        redis=RedisConfig.model_validate({"timeout": PATIENT, "leaseTime": PATIENT, **redis}),
    )
    signing = Signing(metrics=UrlMetrics(registry), public_url="https://share.example", url_keys=KEYS)
    plan = PlannedStorage(name="lake", prefix=PREFIX, vendor="aws")
    clock = lambda: NOW  # noqa: E731 -- time stands still
    async with open_cache(config, keys, CredentialMetrics(registry), signing, clock) as cache:
        remembered = cache.storage(plan)
        vendor = HmacSigner(cost, sessions=remembered.sessions if has_sessions else None, clock=clock)
        signer = remembered.wrap(Storage(name="lake", prefix=PREFIX, signer=vendor)).signer
        assert signer is not None
        running = SigningReplica(signer, vendor, registry)
        await eventually_async(lambda: running.is_up, "the replica uses Redis")
        yield running
        await cache.stop()


def page_of(number: int) -> Paths:
    names = (f"date%3D2026-06-01/part-{number:05d}-{n:05d}.parquet" for n in range(FILES))
    return Paths("\n".join(names).encode(), is_segment=True)


def assert_right(urls: Sequence[str], page: int, table: str = "orders") -> None:
    """Fail unless each URL is genuine, and the one of its file."""
    expected = [f"https://lake.store.example/{table}/{path.decode()}" for path in page_of(page).split()]
    assert [url.partition("?")[0] for url in urls] == expected
    assert all(is_genuine(url, NOW) for url in urls)
