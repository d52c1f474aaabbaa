"""Metrics of credentials and of the cache that keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from gateway.adapters.series import Spread, counter, histogram, labelled_counter

_DURATIONS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_REMAINING: Final = (300.0, 600.0, 1200.0, 1800.0, 2700.0, 3600.0, 7200.0, 14400.0, 43200.0)


class Source(StrEnum):
    """Where a credential that was handed out came from."""

    MEMORY = "memory"
    REDIS = "redis"
    MINTED = "minted"
    # A window that has passed: the provider gives nothing newer just now.
    STALE = "stale"


class Outcome(StrEnum):
    """What became of asking a provider."""

    MINTED = "minted"
    # Given for less time than may be kept.
    SHORT = "short"
    EXPIRED = "expired"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    FAILED = "failed"


class RedisError(StrEnum):
    """Why an operation on Redis came to nothing."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    AUTHENTICATION = "authentication"
    LOADING = "loading"
    READ_ONLY = "read_only"
    FULL = "full"
    CLUSTER = "cluster"
    RESPONSE = "response"
    # What was found there is not a value of ours for that key.
    UNREADABLE = "unreadable"


class CredentialMetrics:
    """Counts what is issued. Labels are names of storages and the words above, so they are few."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._storages: dict[str, StorageSeries] = {}
        self._redis_errors = Counter(
            "sluice_cache_redis_errors",
            "Operations on Redis that came to nothing.",
            ("reason",),
            registry=registry,
        )
        for reason in RedisError:
            self._redis_errors.labels(reason)
        self._redis: _RedisState | None = None
        self._policy = Gauge(
            "sluice_sts_packed_policy_percent",
            "How much of the room for a session policy the last one took.",
            ("storage",),
            registry=registry,
        )
        registry.register(_Storages(self._storages.values()))

    def storage(self, name: str) -> StorageSeries:
        """Return the numbers of a storage, which outlive a reload."""
        return self._storages.setdefault(name, StorageSeries(name))

    def observe_policy_size(self, storage: str, percent: int) -> None:
        self._policy.labels(storage).set(percent)

    def count_redis_error(self, reason: RedisError) -> None:
        self._redis_errors.labels(reason).inc()

    def set_redis(self, *, is_up: bool) -> None:
        """Tell whether Redis is in use; never called, and so not shown, where there is none."""
        if self._redis is None:
            self._redis = _RedisState(self._registry)
        self._redis.up.set(is_up)
        self._redis.breaker.set(not is_up)


class _RedisState:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.up = Gauge("sluice_cache_redis_up", "Whether Redis is in use.", registry=registry)
        self.breaker = Gauge(
            "sluice_cache_redis_breaker_open", "Whether Redis is left alone for now.", registry=registry
        )


class StorageSeries:
    """The numbers of one storage."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = dict.fromkeys(Source, 0)
        self.mints = dict.fromkeys(Outcome, 0)
        # Handed out with less left than the storage's life is to leave.
        self.near_end = 0
        self.refreshes = 0
        self.lease_waits = 0
        self.mint_seconds = Spread(_DURATIONS)
        self.remaining = Spread(_REMAINING)

    def count_request(self, source: Source, left: timedelta) -> None:
        self.requests[source] += 1
        self.remaining.observe(left.total_seconds())

    def count_mint(self, outcome: Outcome, seconds: float) -> None:
        self.mints[outcome] += 1
        self.mint_seconds.observe(seconds)

    def count_lease_wait(self) -> None:
        self.lease_waits += 1


class _Storages(Collector):
    """Makes the numbers into series when they are asked for, in another thread."""

    def __init__(self, storages: Iterable[StorageSeries]) -> None:
        self._series = storages

    def collect(self) -> Iterator[Metric]:
        storages = list(self._series)
        yield labelled_counter(
            "credential_requests",
            "Credentials handed out.",
            "source",
            ((s.name, s.requests.items()) for s in storages),
        )
        yield labelled_counter(
            "credential_mints", "Provider calls.", "outcome", ((s.name, s.mints.items()) for s in storages)
        )
        yield counter(
            "credential_short_lived",
            "Credentials that a provider gave for too short a time to keep.",
            ((s.name, s.mints[Outcome.SHORT]) for s in storages),
        )
        yield counter(
            "credential_near_end",
            "Credentials handed out with less left than the configured life is to leave.",
            ((s.name, s.near_end) for s in storages),
        )
        yield counter(
            "credential_refreshes",
            "Credentials asked for ahead of time, in the background.",
            ((s.name, s.refreshes) for s in storages),
        )
        yield counter(
            "credential_lease_waits",
            "Times that a replica waited for the mint of another.",
            ((s.name, s.lease_waits) for s in storages),
        )
        yield histogram(
            "credential_mint_duration_seconds",
            "Of a provider call.",
            ((s.name, s.mint_seconds) for s in storages),
        )
        yield histogram(
            "credential_remaining_seconds",
            "Left until the provider's expiration when a credential was handed out.",
            ((s.name, s.remaining) for s in storages),
        )
