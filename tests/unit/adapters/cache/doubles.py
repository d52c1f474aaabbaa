"""Processes with a cache each, over a made-up provider, a made-up Redis and a clock in hand."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_client import CollectorRegistry

from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.issuer import CachedIssuer, Shared
from gateway.adapters.cache.key import scope_key
from gateway.adapters.cache.process import ProcessCache, Signing, url_parts
from gateway.adapters.cache.replicas import Replicas
from gateway.adapters.cache.rhythm import Rhythm, rhythm_of
from gateway.adapters.cache.sealed import Sealed
from gateway.adapters.cache.sessions import CachedSessions
from gateway.adapters.cache.signer import CachedSigner
from gateway.adapters.cache.storage import StorageCache
from gateway.adapters.cache.vault import Vault
from gateway.adapters.credential_metrics import CredentialMetrics, Outcome, RedisError, Source
from gateway.adapters.storage_plan import PlannedStorage
from gateway.adapters.url_metrics import UrlMetrics, UrlSeries, UrlSource
from gateway.config.redis import UrlCacheConfig
from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.kept import Kept
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from gateway.domain.window import Window
from gateway.ports import Storage
from tests.fakes.shared_cache import FakeSharedCache

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
KEYS = Keys(current=Key(id="k1", secret=b"s" * 32))
LEASE = timedelta(seconds=5)
# Noon lies in it, a third of its width from its start.
WINDOW = Window(NOON - 5 * MINUTE, NOON + 10 * MINUTE, NOON + 55 * MINUTE)


class Time:
    """A wall clock and a monotonic one that move together, unless the wall clock is set."""

    def __init__(self) -> None:
        self.now = NOON
        self.elapsed = 0.0
        self.asleep = 0

    def clock(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return self.elapsed

    def move(self, span: timedelta) -> None:
        self.now += span
        # A wall clock may be set back; this one never is.
        self.elapsed += max(span, timedelta(0)).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Let others go on, and then time."""
        self.asleep += 1
        await settle()
        self.move(timedelta(seconds=seconds))


class Provider:
    """Mints what it is asked for, or fails; its bytes depend on all that it is told, and on the count."""

    names_recipients = True

    def __init__(self, time: Time) -> None:
        self.calls: list[Scope] = []
        self.failure: Exception | None = None
        # What it gives instead of what it is asked for.
        self.life: timedelta | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self._time = time

    async def issue(self, scope: Scope) -> Credential:
        self.calls.append(scope)
        number = len(self.calls)
        expires_at = self._time.now + (scope.life if self.life is None else self.life)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return credential(f"{scope}-{number}", expires_at)


class Replica:
    """One process: a cache of its own over what all share."""

    def __init__(
        self,
        time: Time,
        shared: FakeSharedCache | None,
        *,
        keys: Keys = KEYS,
        memory: int = 2**26,
        public_url: str = "https://share.example",
        url_keys: Keys = KEYS,
        urls: dict[str, Any] | None = None,
    ) -> None:
        self.registry = CollectorRegistry()
        self.metrics = CredentialMetrics(self.registry)
        replicas = None
        if shared is not None:
            sealed = Sealed(shared, Vault(keys), self.metrics)
            replicas = Replicas(sealed, lease_time=LEASE, sleep=time.sleep, chance=lambda: 0.5)
        self.shared = Shared(
            memory=Kept(memory),
            replicas=replicas,
            clock=time.clock,
            monotonic=time.monotonic,
            chance=lambda: 0.5,
        )
        self.url_metrics = UrlMetrics(self.registry)
        signing = Signing(metrics=self.url_metrics, public_url=public_url, url_keys=url_keys)
        self.urls = url_parts(UrlCacheConfig.model_validate(urls or {}), signing, self.shared)
        self._cache = ProcessCache(self.shared, self.metrics, self.urls)

    def storage(self, **changes: Any) -> StorageCache:
        return self._cache.storage(planned(**changes))

    def wrap(self, provider: Any, **changes: Any) -> CachedIssuer:
        plan = planned(**changes)
        storage = Storage(name=plan.name, prefix=plan.prefix, issuer=provider)
        issuer = self._cache.storage(plan).wrap(storage).issuer
        assert isinstance(issuer, CachedIssuer)
        return issuer

    def sessions(self, **changes: Any) -> CachedSessions:
        sessions = self._cache.storage(planned(**changes)).sessions
        assert isinstance(sessions, CachedSessions)
        return sessions

    def signer(self, signer: Any, **changes: Any) -> CachedSigner:
        plan = planned(**changes)
        storage = Storage(name=plan.name, prefix=plan.prefix, signer=signer)
        wrapped = self._cache.storage(plan).wrap(storage).signer
        assert isinstance(wrapped, CachedSigner)
        return wrapped

    @property
    def url_series(self) -> UrlSeries:
        return self.url_metrics.storage("lake")

    def urls_by_source(self) -> dict[str, int]:
        counts = self.url_series.urls
        return {source.value: counts[source] for source in UrlSource if counts[source]}

    def sources(self) -> dict[str, int]:
        counts = self.metrics.storage("lake").requests
        return {source.value: counts[source] for source in Source if counts[source]}

    def redis_errors(self, reason: RedisError) -> float:
        value = self.registry.get_sample_value("sluice_cache_redis_errors_total", {"reason": reason.value})
        assert value is not None
        return value

    @property
    def near_end(self) -> int:
        return self.metrics.storage("lake").near_end

    def outcomes(self) -> dict[str, int]:
        counts = self.metrics.storage("lake").mints
        return {outcome.value: counts[outcome] for outcome in Outcome if counts[outcome]}

    async def stop(self) -> None:
        await self._cache.stop()


def planned(**changes: Any) -> PlannedStorage:
    settings = {"name": "lake", "prefix": parse_location("s3://lake"), "vendor": "aws", **changes}
    return PlannedStorage(**settings)


def scope(path: str = "s3://lake/t", **changes: Any) -> Scope:
    return Scope(location=parse_location(path), **{"recipient": "ann", "life": HOUR, **changes})


async def windows(asked: Scope | None = None, **changes: Any) -> Rhythm:
    """Return the rotation windows of a scope in a storage with the given settings."""
    asked = asked or scope()
    fingerprint = await Fingerprint(planned(**changes)).settled()
    return rhythm_of(scope_key(fingerprint, asked), asked.life)


async def to_next_window(time: Time, **changes: Any) -> None:
    """Move to the start of the next window of ``scope()``."""
    rhythm = await windows(**changes)
    time.move(rhythm.turn_at(time.now).end - time.now)


def credential(text: str, expires_at: datetime) -> Credential:
    digest = hashlib.sha256(text.encode()).hexdigest()
    keys = AwsTempCredentials(access_key_id=digest[:20], secret_access_key=digest, session_token=digest * 4)
    return Credential(id=digest[:20], secret=keys, expires_at=expires_at)


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(30):
        await asyncio.sleep(0)
