from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.credential_metrics import CredentialMetrics, Outcome, Source
from gateway.adapters.url_metrics import UrlMetrics, UrlSource


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry):
    return UrlMetrics(registry)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"sluice_{name}", labels)


def test_urls_are_counted_by_storage_and_source(metrics, registry):
    metrics.storage("lake").count_urls(UrlSource.MEMORY, 1000)
    metrics.storage("lake").count_urls(UrlSource.SIGNED, 3)
    metrics.storage("pond").count_urls(UrlSource.REDIS, 2)
    assert value(registry, "url_signatures_total", storage="lake", source="memory") == 1000
    assert value(registry, "url_signatures_total", storage="lake", source="signed") == 3
    assert value(registry, "url_signatures_total", storage="lake", source="stale") == 0
    assert value(registry, "url_signatures_total", storage="pond", source="redis") == 2


def test_pages_are_counted_by_outcome_and_timed(metrics, registry):
    lake = metrics.storage("lake")
    lake.count_signing(Outcome.MINTED, 0.002)
    lake.count_signing(Outcome.SHORT, 0.2)
    lake.count_signing(Outcome.THROTTLED, 20)
    assert value(registry, "url_signings_total", storage="lake", outcome="signed") == 1
    assert value(registry, "url_signings_total", storage="lake", outcome="short") == 1
    assert value(registry, "url_signings_total", storage="lake", outcome="throttled") == 1
    assert value(registry, "url_signings_total", storage="lake", outcome="failed") == 0
    assert value(registry, "url_sign_duration_seconds_count", storage="lake") == 3
    assert value(registry, "url_sign_duration_seconds_bucket", storage="lake", le="0.0025") == 1


def test_sessions_are_counted_by_source_and_their_mints_by_outcome(metrics, registry):
    lake = metrics.storage("lake")
    lake.count_session(Source.MEMORY)
    lake.count_session(Source.STALE)
    lake.count_session_mint(Outcome.EXPIRED, 0.1)
    assert value(registry, "signing_sessions_total", storage="lake", source="memory") == 1
    assert value(registry, "signing_sessions_total", storage="lake", source="stale") == 1
    assert value(registry, "signing_session_mints_total", storage="lake", outcome="expired") == 1
    assert value(registry, "signing_session_mints_total", storage="lake", outcome="minted") == 0


def test_waits_and_memory_are_told(metrics, registry):
    metrics.storage("lake").count_lease_wait()
    assert value(registry, "url_lease_waits_total", storage="lake") == 1
    assert value(registry, "url_memory_bytes") == 0
    metrics.memory = lambda: 12345
    assert value(registry, "url_memory_bytes") == 12345


def test_a_storage_keeps_its_numbers_when_it_is_opened_anew(metrics):
    assert metrics.storage("lake") is metrics.storage("lake")
    assert metrics.storage("lake") is not metrics.storage("pond")


def test_they_stand_beside_those_of_credentials(registry, metrics):
    CredentialMetrics(registry).storage("lake")
    metrics.storage("lake")
    names = [family.name for family in registry.collect()]
    assert len(names) == len(set(names))
