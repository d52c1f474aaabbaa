from __future__ import annotations

from datetime import timedelta

from prometheus_client import CollectorRegistry

from gateway.adapters.work_metrics import PrometheusQueueMetrics, PrometheusWorkMetrics
from gateway.domain.job import JobKind
from gateway.work.performance import Outcome


def test_everything_is_shown_from_the_start():
    registry = CollectorRegistry()
    PrometheusQueueMetrics(registry)
    PrometheusWorkMetrics(registry)

    for kind in JobKind:
        assert registry.get_sample_value("sluice_jobs_queued", {"kind": kind}) == 0
        assert registry.get_sample_value("sluice_jobs_running", {"kind": kind}) == 0
        assert registry.get_sample_value("sluice_jobs_lease_losses_total", {"kind": kind}) == 0
        assert registry.get_sample_value("sluice_jobs_duration_seconds_count", {"kind": kind}) == 0
        for outcome in Outcome:
            labels: dict[str, str] = {"kind": kind, "outcome": outcome}
            assert registry.get_sample_value("sluice_jobs_finished_total", labels) == 0


def test_runs_are_counted_by_how_they_end():
    registry = CollectorRegistry()
    metrics = PrometheusWorkMetrics(registry)
    PrometheusQueueMetrics(registry).set_queue(JobKind.VIEW, 3, 2, timedelta(minutes=5))
    metrics.observe_run(JobKind.VIEW, "done", timedelta(seconds=4))
    metrics.count_lease_loss(JobKind.VIEW)

    view = {"kind": "view"}
    assert registry.get_sample_value("sluice_jobs_queued", view) == 3
    assert registry.get_sample_value("sluice_jobs_oldest_queued_seconds", view) == 300
    assert registry.get_sample_value("sluice_jobs_running", view) == 2
    assert registry.get_sample_value("sluice_jobs_finished_total", view | {"outcome": "done"}) == 1
    assert registry.get_sample_value("sluice_jobs_duration_seconds_sum", view) == 4
    assert registry.get_sample_value("sluice_jobs_lease_losses_total", view) == 1
