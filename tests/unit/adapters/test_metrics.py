from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import generate_latest

from gateway.adapters.metrics import PrometheusMetrics
from gateway.domain.audit import AuditKind
from gateway.domain.validity import Validity
from gateway.edge.errors import HTTP
from gateway.ports import HttpMetrics, RpcMetrics

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SPAN = timedelta(milliseconds=30)
REQUESTS = "sluice_http_requests_total"


@pytest.fixture
def metrics() -> PrometheusMetrics:
    return PrometheusMetrics(version="1.2.3")


def value(metrics: PrometheusMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def series(metrics: PrometheusMetrics, name: str) -> list[dict[str, str]]:
    return [
        sample.labels
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    ]


def test_metrics_are_the_ports_of_the_edge_and_of_rpc(metrics):
    ports: tuple[HttpMetrics, RpcMetrics] = (metrics, metrics)
    assert ports == (metrics, metrics)


def test_http_requests_are_counted_by_route_method_and_status(metrics):
    metrics.observe_http("/shares/{share}", "GET", 200, SPAN)
    metrics.observe_http("/shares/{share}", "GET", 200, SPAN)
    metrics.observe_http("/shares/{share}", "GET", 404, SPAN)

    labels = {"route": "/shares/{share}", "method": "GET"}
    assert value(metrics, "sluice_http_requests_total", **labels, status="200") == 2
    assert value(metrics, "sluice_http_requests_total", **labels, status="404") == 1
    assert value(metrics, "sluice_http_request_duration_seconds_count", **labels) == 3
    assert value(metrics, "sluice_http_request_duration_seconds_sum", **labels) == pytest.approx(0.09)
    assert value(metrics, "sluice_http_request_duration_seconds_bucket", **labels, le="0.025") == 0
    assert value(metrics, "sluice_http_request_duration_seconds_bucket", **labels, le="0.05") == 3


def test_what_a_route_may_come_to_is_there_at_0_before_anybody_asks(metrics):
    metrics.show_http("/shares", "GET")

    labels = {"route": "/shares", "method": "GET"}
    shown = {label["status"]: value(metrics, REQUESTS, **label) for label in series(metrics, REQUESTS)}
    assert shown == {"200": 0, "500": 0, "503": 0, "504": 0}
    assert value(metrics, "sluice_http_request_duration_seconds_count", **labels) == 0
    metrics.observe_http("/shares", "GET", 503, SPAN)
    metrics.show_http("/shares", "GET")
    assert value(metrics, REQUESTS, **labels, status="503") == 1


def test_every_status_of_a_failure_is_there_at_0(metrics):
    metrics.show_http("/shares", "GET")
    shown = {label["status"] for label in series(metrics, REQUESTS)}
    assert {str(status) for status in HTTP.values() if status >= 500} <= shown


def test_routes_that_are_told_of_are_bounded_too(metrics):
    for number in range(1000):
        metrics.show_http(f"/raw/{number}", "GET")
    assert len(series(metrics, REQUESTS)) == 201 * 4


def test_a_path_without_a_route_has_one_label_value(metrics):
    metrics.observe_http("", "GET", 404, SPAN)
    assert value(metrics, "sluice_http_requests_total", route="unmatched", method="GET", status="404") == 1


def test_an_invented_http_method_does_not_become_a_label(metrics):
    for number in range(50):
        metrics.observe_http("/shares", f"M{number}", 405, SPAN)
    assert value(metrics, "sluice_http_requests_total", route="/shares", method="other", status="405") == 50
    assert len(series(metrics, "sluice_http_requests_total")) == 1


def test_invented_routes_and_rpc_methods_end_in_one_series(metrics):
    for number in range(1000):
        metrics.observe_http(f"/raw/{number}", "GET", 200, SPAN)
        metrics.observe_rpc(f"/raw/{number}", "OK", SPAN)
    assert len(series(metrics, "sluice_http_requests_total")) == 201
    assert len(series(metrics, "sluice_rpc_requests_total")) == 201
    assert value(metrics, "sluice_rpc_requests_total", method="other", code="OK") == 800


def test_rpc_calls_are_counted_by_method_and_code(metrics):
    metrics.observe_rpc("/gateway.v1.Catalog/Resolve", "NOT_FOUND", SPAN)
    method = "/gateway.v1.Catalog/Resolve"
    assert value(metrics, "sluice_rpc_requests_total", method=method, code="NOT_FOUND") == 1
    assert value(metrics, "sluice_rpc_request_duration_seconds_count", method=method) == 1


def test_files_and_throttled_requests_are_counted(metrics):
    metrics.count_files("acme", 3, 4096)
    metrics.count_files("other", 1, 4)
    metrics.count_throttled()
    assert value(metrics, "sluice_files_signed_total") == 4
    assert value(metrics, "sluice_files_signed_bytes_total") == 4100
    assert value(metrics, "sluice_throttled_requests_total") == 1


def test_what_a_recipient_asks_for_and_is_given_is_counted_under_its_name(metrics):
    metrics.count_recipient("acme", 200)
    metrics.count_files("acme", 3, 4096)
    metrics.count_credential("acme")
    assert value(metrics, "sluice_recipient_requests_total", recipient="acme", outcome="ok") == 1
    assert value(metrics, "sluice_recipient_files_total", recipient="acme") == 3
    assert value(metrics, "sluice_recipient_file_bytes_total", recipient="acme") == 4096
    assert value(metrics, "sluice_recipient_credentials_total", recipient="acme") == 1


def test_a_certificate_that_was_loaded_again_takes_the_place_of_the_one_before(metrics):
    metrics.set_certificate("rest", Validity(NOON, timedelta(days=90)))
    metrics.set_certificate("rest", Validity(NOON + timedelta(days=90), timedelta(days=91)))
    assert value(metrics, "sluice_certificate_life_seconds", use="rest") == 91 * 86400
    seconds = value(metrics, "sluice_certificate_expiry_timestamp_seconds", use="rest")
    assert seconds == (NOON + timedelta(days=90)).timestamp()


def test_build_info_names_version_and_python(metrics):
    assert value(metrics, "sluice_build_info", version="1.2.3", python=platform.python_version()) == 1


def test_loop_lag_is_a_histogram(metrics):
    metrics.observe_lag(timedelta(milliseconds=4))
    assert value(metrics, "sluice_event_loop_lag_seconds_bucket", le="0.0025") == 0
    assert value(metrics, "sluice_event_loop_lag_seconds_bucket", le="0.005") == 1


def test_audit_series_exist_before_the_first_event(metrics):
    assert {labels["kind"] for labels in series(metrics, "sluice_audit_events_total")} == {*AuditKind}
    assert value(metrics, "sluice_audit_failures_total") == 0
    assert value(metrics, "sluice_audit_dropped_events_total") == 0
    assert value(metrics, "sluice_audit_backlog_bytes") == 0
    assert value(metrics, "sluice_audit_oldest_wait_seconds") == 0


def test_audit_events_failures_drops_and_backlog_are_reported(metrics):
    metrics.count_audit_event(AuditKind.GRANT)
    metrics.count_audit_failure()
    metrics.count_audit_drops(7)
    metrics.set_audit_backlog(123)
    assert value(metrics, "sluice_audit_events_total", kind="grant") == 1
    assert value(metrics, "sluice_audit_failures_total") == 1
    assert value(metrics, "sluice_audit_dropped_events_total") == 7
    assert value(metrics, "sluice_audit_backlog_bytes") == 123


def test_a_reload_replaces_the_generation(metrics):
    metrics.set_config("aaa", NOON)
    assert value(metrics, "sluice_config_reloads_total", outcome="success") == 0
    metrics.count_reload("bbb", NOON + timedelta(hours=1))

    assert series(metrics, "sluice_config_generation_info") == [{"generation": "bbb"}]
    assert value(metrics, "sluice_config_reloads_total", outcome="success") == 1
    seconds = value(metrics, "sluice_config_last_reload_success_timestamp_seconds")
    assert seconds == (NOON + timedelta(hours=1)).timestamp()


def test_a_refused_reload_shows_until_another_succeeds(metrics):
    metrics.set_config("aaa", NOON)
    shown = [value(metrics, "sluice_config_last_reload_successful")]
    metrics.count_refused_reload()
    shown.append(value(metrics, "sluice_config_last_reload_successful"))
    metrics.count_reload("bbb", NOON)
    shown.append(value(metrics, "sluice_config_last_reload_successful"))
    assert shown == [1, 0, 1]


def test_a_refused_reload_leaves_the_generation_and_the_time(metrics):
    metrics.set_config("aaa", NOON)
    metrics.count_refused_reload()
    assert series(metrics, "sluice_config_generation_info") == [{"generation": "aaa"}]
    assert value(metrics, "sluice_config_reloads_total", outcome="failure") == 1
    assert value(metrics, "sluice_config_last_reload_success_timestamp_seconds") == NOON.timestamp()


def test_two_processes_in_one_interpreter_do_not_share_series(metrics):
    other = PrometheusMetrics(version="1.2.3")
    metrics.count_throttled()
    assert value(other, "sluice_throttled_requests_total") == 0


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_process_metrics_are_exposed(metrics):
    assert b"process_resident_memory_bytes" in generate_latest(metrics.registry)
