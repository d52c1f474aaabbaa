from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from resource import RLIMIT_NOFILE, getrlimit

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gateway.adapters.metrics import PrometheusMetrics
from gateway.adapters.service_metrics import ServiceMetrics
from gateway.adapters.worker_metrics import WorkerMetrics, from_report, merge, to_report
from gateway.domain.validity import Validity

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SPAN = timedelta(milliseconds=30)
SHARES = {"route": "/shares", "method": "GET"}
REQUESTS = "sluice_http_requests_total"


def counted(requests: int, *, backlog: int = 0, generation: str = "g1", at: datetime = NOON):
    """Return the metrics of a worker that has answered so many requests."""
    metrics = PrometheusMetrics(version="1.2.3")
    for _ in range(requests):
        metrics.observe_http("/shares", "GET", 200, SPAN)
    metrics.set_audit_backlog(backlog)
    metrics.set_config(generation, at)
    return metrics


def report(metrics: PrometheusMetrics):
    """Return what arrives of a worker's metrics."""
    return json.loads(json.dumps(to_report(metrics.registry.collect())))


@pytest.fixture
def workers() -> WorkerMetrics:
    return WorkerMetrics(lambda: 2)


def value(workers: WorkerMetrics, name: str, **labels: str) -> float | None:
    return workers.registry.get_sample_value(name, labels)


def test_a_report_brings_every_metric_as_it_was():
    sent = [metric for metric in counted(3).registry.collect() if metric.name.startswith("sluice")]

    assert from_report(json.loads(json.dumps(to_report(sent)))) == sent


def test_counters_and_histograms_add_up(workers):
    workers.update(1, report(counted(3)))
    workers.update(2, report(counted(4)))

    assert value(workers, REQUESTS, **SHARES, status="200") == 7
    duration = "sluice_http_request_duration_seconds"
    assert value(workers, f"{duration}_count", **SHARES) == 7
    assert value(workers, f"{duration}_sum", **SHARES) == pytest.approx(0.21)
    assert value(workers, f"{duration}_bucket", **SHARES, le="0.025") == 0
    assert value(workers, f"{duration}_bucket", **SHARES, le="0.05") == 7


def test_a_later_report_takes_the_place_of_the_one_before(workers):
    workers.update(1, report(counted(3)))
    workers.update(1, report(counted(5)))

    assert value(workers, REQUESTS, **SHARES, status="200") == 5


def test_counts_of_a_worker_that_ended_stay_and_its_gauges_go(workers):
    workers.update(1, report(counted(3, backlog=100)))
    workers.update(2, report(counted(4, backlog=20)))
    assert value(workers, "sluice_audit_backlog_bytes") == 120

    workers.retire(1)
    workers.update(1, report(counted(1, backlog=3)))
    assert value(workers, REQUESTS, **SHARES, status="200") == 8
    assert value(workers, "sluice_audit_backlog_bytes") == 23

    workers.retire(1)
    workers.retire(2)
    assert value(workers, REQUESTS, **SHARES, status="200") == 8
    assert value(workers, "sluice_audit_backlog_bytes") is None


def test_a_worker_that_ended_before_its_first_report_changes_nothing(workers):
    workers.update(1, report(counted(3)))
    workers.retire(2)

    assert value(workers, REQUESTS, **SHARES, status="200") == 3


def test_what_is_the_same_for_all_is_there_once(workers):
    workers.update(1, report(counted(1)))
    workers.update(2, report(counted(1)))

    assert value(workers, "sluice_config_generation_info", generation="g1") == 1


def test_workers_that_disagree_about_the_configuration_show(workers):
    later = NOON + timedelta(hours=1)
    workers.update(1, report(counted(1, generation="g1", at=NOON)))
    workers.update(2, report(counted(1, generation="g2", at=later)))

    assert value(workers, "sluice_config_generation_info", generation="g1") == 1
    assert value(workers, "sluice_config_generation_info", generation="g2") == 1
    name = "sluice_config_last_reload_success_timestamp_seconds"
    assert value(workers, name) == NOON.timestamp()


def test_a_worker_that_refused_its_configuration_shows_and_so_does_the_first_certificate_to_end(workers):
    one, other = counted(1), counted(1)
    one.set_certificate("rest", Validity(NOON, timedelta(days=90)))
    other.set_certificate("rest", Validity(NOON + timedelta(days=1), timedelta(days=90)))
    other.count_refused_reload()
    workers.update(1, report(one))
    workers.update(2, report(other))

    assert value(workers, "sluice_config_last_reload_successful") == 0
    assert value(workers, "sluice_certificate_expiry_timestamp_seconds", use="rest") == NOON.timestamp()
    # How long one lives, and not all of them after one another.
    assert value(workers, "sluice_certificate_life_seconds", use="rest") == 90 * 86400


def test_a_worker_that_uses_up_its_descriptors_shows_however_few_the_others_use(workers):
    for number, used in ((1, 1020), (2, 20), (3, 20)):
        registry = CollectorRegistry()
        Gauge("process_open_fds", "", registry=registry).set(used)
        Gauge("process_max_fds", "", registry=registry).set(1024)
        workers.update(number, to_report(registry.collect()))

    # The supervisor's own are among them, and must not make the share smaller.
    assert value(workers, "process_open_fds") == 1020
    assert value(workers, "process_max_fds") in {1024, getrlimit(RLIMIT_NOFILE)[0]}


def test_a_service_that_one_worker_does_not_reach_shows(workers):
    for number, is_reachable in ((1, True), (2, False)):
        registry = CollectorRegistry()
        ServiceMetrics(registry).set_reachable("vending", is_reachable=is_reachable)
        workers.update(number, to_report(registry.collect()))

    assert value(workers, "sluice_service_reachable", service="vending") == 0


def test_workers_and_their_restarts_are_counted(workers):
    workers.count_restart()

    assert value(workers, "sluice_workers") == 2
    assert value(workers, "sluice_worker_restarts_total") == 1


def test_both_formats_can_be_written_and_read(workers):
    one, other = counted(2), counted(3)
    other.observe_http("/shares/{share}", "POST", 404, SPAN)
    workers.update(1, report(one))
    workers.update(2, report(other))

    assert b"sluice_http_requests_total{" in generate_latest(workers.registry)
    text = generate_openmetrics(workers.registry).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert len(families["sluice_http_requests"].samples) == 2


def test_merging_leaves_what_was_merged_alone():
    first, second = from_report(report(counted(1))), from_report(report(counted(2)))
    merge([first, second])
    again = {family.name: family for family in merge([first, second])}

    (total,) = [sample for sample in again["sluice_http_requests"].samples if sample.name == REQUESTS]
    assert total.value == 3
