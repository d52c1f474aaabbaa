from __future__ import annotations

from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from gateway.adapters.snapshot_metrics import PrometheusSnapshotMetrics
from gateway.ports import SnapshotMetrics


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry) -> SnapshotMetrics:
    return PrometheusSnapshotMetrics(registry)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"sluice_snapshot_{name}", labels)


def test_readings_are_timed_and_their_files_counted_by_kind(metrics, registry):
    metrics.observe_load("cold", timedelta(seconds=2), 1000)
    metrics.observe_load("refresh", timedelta(milliseconds=30), 1001)
    metrics.observe_load("refresh", timedelta(milliseconds=300), 1002)

    assert value(registry, "load_duration_seconds_sum", kind="cold") == 2
    assert value(registry, "load_duration_seconds_count", kind="refresh") == 2
    assert value(registry, "load_duration_seconds_bucket", kind="refresh", le="0.05") == 1
    assert value(registry, "loaded_files_total", kind="refresh") == 2003


def test_looks_for_newer_versions_are_counted_and_the_age_of_what_is_served_measured(metrics, registry):
    metrics.count_check("failed")
    metrics.observe_staleness(timedelta(seconds=30), timedelta(0))

    assert value(registry, "checks_total", outcome="failed") == 1
    assert value(registry, "checks_total", outcome="listed") == 0
    assert value(registry, "staleness_seconds_bucket", le="15.0") == 0
    assert value(registry, "staleness_seconds_bucket", le="60.0") == 1


def test_files_of_a_log_that_could_not_be_used_are_counted(metrics, registry):
    metrics.count_fallback("checkpoint")

    assert value(registry, "fallbacks_total", reason="checkpoint") == 1


def test_hints_and_what_they_left_out_are_counted(metrics, registry):
    metrics.count_hints("sql", used=3, skipped=1)
    metrics.count_hints("json", used=0, skipped=1)
    metrics.count_pruned(kept=10, dropped=990)

    assert value(registry, "hints_total", kind="sql", use="used") == 3
    assert value(registry, "hints_total", kind="json", use="skipped") == 1
    assert value(registry, "pruned_files_total", outcome="kept") == 10
    assert value(registry, "pruned_files_total", outcome="dropped") == 990


def test_what_is_kept_is_told_as_it_is(metrics, registry):
    metrics.set_memory(3, 3000)
    metrics.set_memory(2, 2000)

    assert (value(registry, "kept"), value(registry, "memory_bytes")) == (2, 2000)


def test_what_has_not_happened_is_nought_and_not_missing(metrics, registry):
    text = generate_latest(registry).decode()

    assert 'sluice_snapshot_fallbacks_total{reason="compaction"} 0.0' in text
    assert 'sluice_snapshot_load_duration_seconds_count{kind="cold"} 0.0' in text
    assert 'sluice_snapshot_hints_total{kind="json",use="skipped"} 0.0' in text
    assert 'sluice_snapshot_pruned_files_total{outcome="dropped"} 0.0' in text


def test_an_answer_is_overdue_by_what_its_freshness_allows_and_not_by_its_age(registry, metrics):
    hour, minute = timedelta(hours=1), timedelta(minutes=1)
    metrics.observe_staleness(hour, 2 * hour)
    metrics.observe_staleness(minute, timedelta(0))
    assert value(registry, "overdue_total") == 0
    metrics.observe_staleness(2 * minute, timedelta(0))
    metrics.observe_staleness(hour + 2 * minute, hour)
    assert value(registry, "overdue_total") == 2
