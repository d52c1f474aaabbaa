"""A replica's cache over a real Redis, before a made-up provider."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from prometheus_client import CollectorRegistry

from gateway.adapters.cache.drop import Drops
from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.issuer import CachedIssuer
from gateway.adapters.cache.key import scope_key
from gateway.adapters.cache.process import open_cache, open_drops
from gateway.adapters.cache.rhythm import rhythm_of
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.storage_plan import PlannedStorage
from gateway.config.redis import CacheConfig, RedisConfig
from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from gateway.ports import Storage
from tests.waiting import eventually_async

KEYS = Keys(current=Key(id="k1", secret=b"s" * 32))
PREFIX = parse_location("s3://lake")
PLAN = PlannedStorage(name="lake", prefix=PREFIX, vendor="aws")
# Without files to read, it is known at once.
FINGERPRINT = Fingerprint(PLAN).value or b""
# Time stands still, so that no window turns in the middle of a test.
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LIFE = timedelta(hours=1)
# On a busy machine an operation may take longer than a request would wait for it, and a renewal come late.
PATIENT = timedelta(seconds=30)
_numbers = count()


@dataclass
class Provider:
    """Takes a while, and keeps what it was asked for."""

    names_recipients = True
    seconds: float = 0.0
    calls: list[Scope] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def issue(self, scope: Scope) -> Credential:
        self.calls.append(scope)
        await asyncio.sleep(self.seconds)
        await self.gate.wait()
        digest = hashlib.sha256(f"{scope}-{len(self.calls)}".encode()).hexdigest()
        keys = AwsTempCredentials(
            access_key_id=digest[:20], secret_access_key=f"very-secret-{digest}", session_token=digest * 4
        )
        # The recipient stands in it, so that a test can tell whose it is.
        return Credential(id=f"{scope.recipient}-{digest[:20]}", secret=keys, expires_at=NOW + scope.life)


@dataclass
class Replica:
    issuer: CachedIssuer
    registry: CollectorRegistry

    async def issue(self, path: str = "t", recipient: str = "ann") -> Credential:
        return await self.issuer.issue(self._scope(path, recipient))

    def _scope(self, path: str, recipient: str) -> Scope:
        """Return a scope whose window has just begun, so that nothing is asked for ahead of the next one."""
        for number in count():
            location = parse_location(f"s3://lake/{path}/{number}")
            scope = Scope(location=location, recipient=recipient, life=LIFE)
            rhythm = rhythm_of(scope_key(FINGERPRINT, scope), LIFE)
            if NOW - rhythm.turn_at(NOW).start < rhythm.width / 2:
                return scope
        raise AssertionError

    def errors(self, reason: str) -> float:
        value = self.registry.get_sample_value("sluice_cache_redis_errors_total", {"reason": reason})
        return value or 0.0

    def served(self, source: str) -> float:
        labels = {"storage": "lake", "source": source}
        return self.registry.get_sample_value("sluice_credential_requests_total", labels) or 0.0

    @property
    def lease_waits(self) -> float | None:
        return self.registry.get_sample_value("sluice_credential_lease_waits_total", {"storage": "lake"})

    @property
    def is_up(self) -> bool:
        return self.registry.get_sample_value("sluice_cache_redis_up") == 1


async def agree(one: Replica, other: Replica) -> Credential:
    """Return a credential that both have, once one finds what the other has issued under a new name."""

    async def agreed() -> Credential | None:
        path = f"agreed-{next(_numbers)}"
        issued = await one.issue(path)
        return issued if await other.issue(path) == issued else None

    return await eventually_async(agreed, "the replicas agree")


@asynccontextmanager
async def replica(
    provider: Provider, keys: Keys = KEYS, *, is_up: bool = True, **redis: Any
) -> AsyncIterator[Replica]:
    """Run the cache of one replica, once it uses Redis unless that cannot be used from the start."""
    registry = CollectorRegistry()
    config = CacheConfig(
        redis=RedisConfig.model_validate({"timeout": PATIENT, "leaseTime": PATIENT, **redis})
    )
    async with open_cache(config, keys, CredentialMetrics(registry), clock=lambda: NOW) as cache:
        issuer = cache.storage(PLAN).wrap(Storage(name="lake", prefix=PREFIX, issuer=provider)).issuer
        assert isinstance(issuer, CachedIssuer)
        running = Replica(issuer, registry)
        await eventually_async(lambda: running.is_up or not is_up, "the replica uses Redis")
        yield running
        await cache.stop()


@asynccontextmanager
async def dropping(config: RedisConfig) -> AsyncIterator[Drops]:
    """Open what removes values from Redis, once it uses Redis."""
    registry = CollectorRegistry()
    async with open_drops(config, KEYS, CredentialMetrics(registry)) as drops:
        await eventually_async(lambda: registry.get_sample_value("sluice_cache_redis_up"), "Redis is used")
        yield drops
