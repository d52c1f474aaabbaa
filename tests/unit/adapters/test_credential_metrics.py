from __future__ import annotations

from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from gateway.adapters.credential_metrics import CredentialMetrics, Outcome, RedisError, Source
from gateway.ports import StorageMetrics


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry):
    return CredentialMetrics(registry)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"sluice_{name}", labels)


def test_requests_are_counted_by_storage_and_source(metrics, registry):
    lake = metrics.storage("lake")
    lake.count_request(Source.MEMORY, timedelta(minutes=40))
    lake.count_request(Source.MEMORY, timedelta(minutes=4))
    lake.count_request(Source.STALE, timedelta(minutes=10))
    assert value(registry, "credential_requests_total", storage="lake", source="memory") == 2
    assert value(registry, "credential_requests_total", storage="lake", source="stale") == 1
    assert value(registry, "credential_requests_total", storage="lake", source="redis") == 0
    assert value(registry, "credential_remaining_seconds_bucket", storage="lake", le="300.0") == 1
    assert value(registry, "credential_remaining_seconds_count", storage="lake") == 3


def test_mints_are_counted_by_outcome_and_timed(metrics, registry):
    lake = metrics.storage("lake")
    lake.count_mint(Outcome.MINTED, 0.2)
    lake.count_mint(Outcome.SHORT, 0.3)
    lake.count_mint(Outcome.THROTTLED, 20)
    assert value(registry, "credential_mints_total", storage="lake", outcome="throttled") == 1
    assert value(registry, "credential_short_lived_total", storage="lake") == 1
    assert value(registry, "credential_mint_duration_seconds_count", storage="lake") == 3
    assert value(registry, "credential_mint_duration_seconds_bucket", storage="lake", le="0.25") == 1


def test_waits_and_refreshes_are_counted(metrics, registry):
    lake = metrics.storage("lake")
    lake.lease_waits += 2
    lake.refreshes += 3
    assert value(registry, "credential_lease_waits_total", storage="lake") == 2
    assert value(registry, "credential_refreshes_total", storage="lake") == 3


def test_a_storage_keeps_its_numbers_when_it_is_opened_anew(metrics):
    assert metrics.storage("lake") is metrics.storage("lake")
    assert metrics.storage("lake") is not metrics.storage("pond")


def test_redis_is_up_or_left_alone(metrics, registry):
    # Where there is none, nobody should be alarmed.
    assert value(registry, "cache_redis_up") is None
    metrics.set_redis(is_up=True)
    assert value(registry, "cache_redis_up") == 1
    assert value(registry, "cache_redis_breaker_open") == 0
    metrics.set_redis(is_up=False)
    assert value(registry, "cache_redis_up") == 0
    assert value(registry, "cache_redis_breaker_open") == 1


def test_every_reason_has_its_series_from_the_start(metrics, registry):
    assert all(value(registry, "cache_redis_errors_total", reason=reason) == 0 for reason in RedisError)
    metrics.count_redis_error(RedisError.FULL)
    assert value(registry, "cache_redis_errors_total", reason="full") == 1


def test_it_takes_what_vendors_see(metrics, registry):
    port: StorageMetrics = metrics
    port.observe_policy_size("lake", 43)
    assert value(registry, "sts_packed_policy_percent", storage="lake") == 43


def test_series_are_named_after_what_they_count(metrics, registry):
    metrics.storage("lake")
    text = generate_latest(registry).decode()
    assert "sluice_credential_requests_total{" in text
    assert "sluice_credential_mint_duration_seconds_bucket{" in text
