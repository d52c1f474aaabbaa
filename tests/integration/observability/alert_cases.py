"""For each alert: series that make it fire, and series that must not; one value a minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Series = Mapping[str, str]

_DAY = 86400
_HTTP = "sluice_http_requests_total"
_SECONDS = "sluice_http_request_duration_seconds"
_BOUNDED = 'route="/shares"'
_QUERY = 'route="/shares/{share}/schemas/{schema}/tables/{table}/query"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    # Labels of the alert, besides its name and severity.
    labels: Mapping[str, str] = field(default_factory=dict)
    fires: Series
    # How many minutes that takes.
    after: int
    # Each looks like trouble and is none.
    quiet: Sequence[Series]


def counter(each_minute: float, minutes: int = 700, start: float = 0) -> str:
    return f"{start:g}+{each_minute:g}x{minutes}"


def gauge(value: float, minutes: int = 700) -> str:
    return f"{value:g}x{minutes}"


def blip(value: float, usual: float, minutes: int) -> str:
    """Return a gauge that is out of bounds for some minutes only."""
    return f"{usual:g}x30 {value:g}x{minutes} {usual:g}x600"


def burst(events: float) -> str:
    """Return a counter that grew once, long ago."""
    return f"0x30 {events:g}x670"


def requests(good: float, bad: float) -> Series:
    return {
        f'{_HTTP}{{status="200", instance="a"}}': counter(good),
        f'{_HTTP}{{status="503", instance="a"}}': counter(bad),
    }


def durations(every: float, within: float, route: str = _BOUNDED) -> Series:
    return {
        f"{_SECONDS}_count{{{route}}}": counter(every),
        f'{_SECONDS}_bucket{{{route}, le="1.0"}}': counter(within),
    }


def outcomes(metric: str, good: str, bad: str, counts: tuple[float, float], label: str = "outcome") -> Series:
    return {
        f'{metric}{{storage="lake", {label}="{good}"}}': counter(counts[0]),
        f'{metric}{{storage="lake", {label}="{bad}"}}': counter(counts[1]),
    }


def recipient(ok: float, outcome: str, count: float) -> Series:
    metric = "sluice_recipient_requests_total"
    return {
        f'{metric}{{recipient="acme", outcome="ok", instance="a"}}': counter(ok),
        f'{metric}{{recipient="acme", outcome="{outcome}", instance="a"}}': counter(count),
    }


def checks(listed: float, failed: float) -> Series:
    metric = "sluice_snapshot_checks_total"
    return {
        f'{metric}{{outcome="listed"}}': counter(listed),
        f'{metric}{{outcome="failed"}}': counter(failed),
    }


def ages(every: float, overdue: float, old: float = 0) -> Series:
    metric = "sluice_snapshot_staleness_seconds"
    return {
        f"{metric}_count": counter(every),
        f'{metric}_bucket{{le="900.0"}}': counter(every - old),
        "sluice_snapshot_overdue_total": counter(overdue),
    }


def lives(every: float, near_end: float, short: float = 0) -> Series:
    return {
        'sluice_credential_requests_total{storage="lake", source="memory"}': counter(every),
        'sluice_credential_near_end_total{storage="lake"}': counter(near_end),
        'sluice_credential_remaining_seconds_bucket{storage="lake", le="1200.0"}': counter(short),
    }


def certificate(use: str, left: float, life: float) -> Series:
    """Return a certificate that has so much left at the beginning."""
    labels = f'instance="a", use="{use}"'
    return {
        f"sluice_certificate_expiry_timestamp_seconds{{{labels}}}": gauge(left),
        f"sluice_certificate_life_seconds{{{labels}}}": gauge(life),
    }


def lags(below: float, every: float) -> Series:
    metric = 'sluice_event_loop_lag_seconds_bucket{job="sluice-edge", instance="a", le='
    return {
        f'{metric}"0.05"}}': counter(below),
        f'{metric}"0.25"}}': counter(every),
        f'{metric}"+Inf"}}': counter(every),
    }


def one(series: str, values: str) -> Series:
    return {series: values}


_A = 'instance="a"'
_EDGE = 'job="sluice-edge", instance="a"'
_IN_A = {"instance": "a"}
_LAKE = {"storage": "lake"}
_MINTS = "sluice_credential_mints_total"
_SIGNINGS = "sluice_url_signings_total"

CASES: Mapping[str, Case] = {
    "SluiceErrorBudgetBurnsFast": Case(
        fires=requests(98, 2),
        after=70,
        quiet=[
            requests(99, 1),
            # Six failures at night, of which one request in ten minutes is: nobody is to be woken.
            requests(0.1, 0.1),
            # Of 40 requests in an hour not quite five fail.
            requests(0.7, 0.08),
            # Two bad minutes.
            {f'{_HTTP}{{status="200"}}': counter(98), f'{_HTTP}{{status="503"}}': "0x30 0+5x2 10x600"},
        ],
    ),
    "SluiceErrorBudgetBurns": Case(
        fires=requests(99, 1),
        after=390,
        quiet=[
            requests(998, 4),
            requests(0.1, 0.1),
            # Of 250 requests in six hours not quite five fail.
            requests(0.7, 0.013),
        ],
    ),
    "SluiceErrorBudgetBurnsSlowly": Case(
        # In the last case not quite five of 3,000 requests.
        fires=requests(998, 2),
        after=480,
        quiet=[requests(9995, 5), requests(100, 0), requests(6, 0.0075)],
    ),
    "SluiceLatencyBudgetBurnsFast": Case(
        fires=durations(100, 80),
        after=70,
        quiet=[durations(100, 95), durations(100, 20, _QUERY), durations(0.1, 0)],
    ),
    "SluiceLatencyBudgetBurnsSlowly": Case(
        fires=durations(100, 97), after=480, quiet=[durations(1000, 995), durations(100, 20, _QUERY)]
    ),
    "SluiceProviderThrottles": Case(
        labels=_LAKE | {"call": "credential"},
        fires=outcomes(_MINTS, "minted", "throttled", (8, 2)),
        after=20,
        quiet=[
            outcomes(_MINTS, "minted", "throttled", (95, 5)),
            outcomes(_MINTS, "minted", "throttled", (0, 0)),
        ],
    ),
    "SluiceProviderFails": Case(
        labels=_LAKE | {"call": "signature"},
        fires=outcomes(_SIGNINGS, "signed", "refused", (2, 8)),
        after=15,
        quiet=[
            outcomes(_SIGNINGS, "signed", "refused", (8, 2)),
            outcomes(_SIGNINGS, "throttled", "short", (5, 5)),
        ],
    ),
    "SluiceServesPastWindow": Case(
        labels=_LAKE | {"what": "credential"},
        fires=outcomes("sluice_credential_requests_total", "memory", "stale", (50, 5), "source"),
        after=20,
        quiet=[
            outcomes("sluice_credential_requests_total", "memory", "redis", (50, 5), "source"),
            {'sluice_credential_requests_total{storage="lake", source="stale"}': burst(40)},
        ],
    ),
    "SluiceCredentialsNearMinimumLife": Case(
        labels=_LAKE,
        fires=lives(100, 5),
        after=30,
        # The third is a credentialLife of 15 minutes.
        quiet=[lives(1000, 1), lives(0, 0), lives(100, 0, short=100)],
    ),
    "SluiceCredentialsShortLived": Case(
        labels=_LAKE,
        fires=one('sluice_credential_short_lived_total{storage="lake"}', counter(1)),
        after=30,
        quiet=[one('sluice_credential_short_lived_total{storage="lake"}', gauge(7))],
    ),
    "SluiceRedisDown": Case(
        fires={
            'sluice_cache_redis_up{instance="a"}': gauge(0),
            'sluice_cache_redis_up{instance="b"}': gauge(0),
        },
        after=10,
        quiet=[
            {
                'sluice_cache_redis_up{instance="a"}': gauge(0),
                'sluice_cache_redis_up{instance="b"}': gauge(1),
            },
            one(f"sluice_cache_redis_up{{{_A}}}", blip(0, 1, 3)),
        ],
    ),
    "SluiceRedisBreakerOpen": Case(
        labels=_IN_A,
        fires=one(f"sluice_cache_redis_breaker_open{{{_A}}}", gauge(1)),
        after=15,
        quiet=[one(f"sluice_cache_redis_breaker_open{{{_A}}}", blip(1, 0, 8))],
    ),
    "SluiceRedisErrors": Case(
        labels={"reason": "timeout"},
        fires=one('sluice_cache_redis_errors_total{reason="timeout"}', counter(30)),
        after=20,
        quiet=[one('sluice_cache_redis_errors_total{reason="timeout"}', counter(6))],
    ),
    "SluiceCacheHitsFew": Case(
        labels=_LAKE,
        fires=outcomes("sluice_credential_requests_total", "memory", "minted", (40, 60), "source"),
        after=50,
        quiet=[
            outcomes("sluice_credential_requests_total", "redis", "minted", (60, 40), "source"),
            # Who asks now and then finds nothing remembered.
            outcomes("sluice_credential_requests_total", "memory", "minted", (1, 9), "source"),
        ],
    ),
    "SluiceSnapshotChecksFail": Case(fires=checks(80, 20), after=15, quiet=[checks(95, 5), checks(0, 0)]),
    "SluiceSnapshotsStale": Case(
        fires=ages(100, 5),
        after=30,
        # The third is a freshness of an hour.
        quiet=[ages(1000, 5), ages(0, 0), ages(100, 0, old=90)],
    ),
    "SluiceColdLoadStorm": Case(
        labels=_IN_A,
        fires=one(f'sluice_snapshot_load_duration_seconds_count{{{_A}, kind="cold"}}', counter(60)),
        after=30,
        quiet=[
            one(f'sluice_snapshot_load_duration_seconds_count{{{_A}, kind="cold"}}', counter(20)),
            one(f'sluice_snapshot_load_duration_seconds_count{{{_A}, kind="refresh"}}', counter(600)),
            # A start with many tables.
            one(f'sluice_snapshot_load_duration_seconds_count{{{_A}, kind="cold"}}', "0+100x10 1000x600"),
        ],
    ),
    "SluiceSnapshotFallbacks": Case(
        labels={"reason": "checkpoint"},
        fires=one('sluice_snapshot_fallbacks_total{reason="checkpoint"}', "0x30 1x60"),
        after=40,
        quiet=[one('sluice_snapshot_fallbacks_total{reason="checkpoint"}', gauge(3))],
    ),
    "SluiceIndexUnusable": Case(
        labels={"outcome": "corrupt"},
        fires=one('sluice_snapshot_indexes_total{outcome="corrupt"}', "0x30 1x60"),
        after=40,
        quiet=[
            one('sluice_snapshot_indexes_total{outcome="stale"}', counter(5)),
            one('sluice_snapshot_indexes_total{outcome="corrupt"}', gauge(2)),
        ],
    ),
    "SluiceAbsent": Case(
        fires=one('up{job="prometheus"}', gauge(1)),
        after=10,
        quiet=[one(f"up{{{_EDGE}}}", gauge(1)), one('up{job="prod-sluice-edge", instance="a"}', gauge(0))],
    ),
    "SluiceServiceDown": Case(
        labels={"job": "sluice-edge"},
        fires=one(f"up{{{_EDGE}}}", gauge(0)),
        after=5,
        quiet=[
            {f"up{{{_EDGE}}}": gauge(0), 'up{job="sluice-edge", instance="b"}': gauge(1)},
            one('up{job="other", instance="a"}', gauge(0)),
        ],
    ),
    "SluiceServiceUnreachable": Case(
        labels={"job": "sluice-edge", "service": "vending"},
        fires={
            f'sluice_service_reachable{{{_EDGE}, service="vending"}}': gauge(0),
            f'sluice_service_reachable{{{_EDGE}, service="catalog"}}': gauge(1),
        },
        after=5,
        quiet=[
            # A rollout.
            one(f'sluice_service_reachable{{{_EDGE}, service="vending"}}', blip(0, 1, 1)),
            # One edge has lost its way; the others have not.
            {
                f'sluice_service_reachable{{{_EDGE}, service="vending"}}': gauge(0),
                'sluice_service_reachable{job="sluice-edge", instance="b", service="vending"}': gauge(1),
            },
        ],
    ),
    "SluiceTargetDown": Case(
        labels={"job": "sluice-edge", "instance": "a"},
        fires={f"up{{{_EDGE}}}": gauge(0), 'up{job="sluice-edge", instance="b"}': gauge(1)},
        after=10,
        quiet=[one(f"up{{{_EDGE}}}", blip(0, 1, 3))],
    ),
    "SluiceEventLoopLags": Case(
        labels={"job": "sluice-edge", "instance": "a"},
        fires=lags(50, 100),
        after=20,
        quiet=[lags(1000, 1001), lags(0, 0)],
    ),
    "SluiceFileDescriptorsFew": Case(
        labels={"job": "sluice-edge", "instance": "a"},
        fires={f"process_open_fds{{{_EDGE}}}": gauge(900), f"process_max_fds{{{_EDGE}}}": gauge(1024)},
        after=15,
        quiet=[
            {f"process_open_fds{{{_EDGE}}}": gauge(500), f"process_max_fds{{{_EDGE}}}": gauge(1024)},
            {'process_open_fds{job="other"}': gauge(900), 'process_max_fds{job="other"}': gauge(1024)},
        ],
    ),
    "SluiceWorkersRestart": Case(
        labels=_IN_A,
        fires=one(f"sluice_worker_restarts_total{{{_A}}}", counter(0.2)),
        after=35,
        quiet=[one(f"sluice_worker_restarts_total{{{_A}}}", "0x30 1x600")],
    ),
    "SluiceReloadFails": Case(
        labels=_IN_A,
        fires=one(f"sluice_config_last_reload_successful{{{_A}}}", gauge(0)),
        after=10,
        quiet=[one(f"sluice_config_last_reload_successful{{{_A}}}", blip(0, 1, 3))],
    ),
    "SluiceGenerationsDiffer": Case(
        labels={"job": "sluice-catalog"},
        fires={
            'sluice_config_generation_info{job="sluice-catalog", instance="a", generation="x"}': gauge(1),
            'sluice_config_generation_info{job="sluice-catalog", instance="b", generation="y"}': gauge(1),
        },
        after=20,
        quiet=[
            # Processes of different services hold different parts of the configuration.
            {
                'sluice_config_generation_info{job="sluice-catalog", instance="a", generation="x"}': gauge(1),
                'sluice_config_generation_info{job="sluice-edge", instance="b", generation="y"}': gauge(1),
            },
            # A rolling change.
            {
                'sluice_config_generation_info{job="sluice-edge", instance="a", generation="x"}': "1x30 _x99",
                'sluice_config_generation_info{job="sluice-edge", instance="a", generation="y"}': "_x30 1x99",
                'sluice_config_generation_info{job="sluice-edge", instance="b", generation="x"}': "1x34 _x99",
                'sluice_config_generation_info{job="sluice-edge", instance="b", generation="y"}': "_x34 1x99",
            },
        ],
    ),
    "SluiceCertificateExpires": Case(
        labels={"instance": "a", "use": "services"},
        fires=certificate("services", _DAY, 90 * _DAY),
        after=20,
        quiet=[
            certificate("services", 4 * _DAY, 90 * _DAY),
            # One that lives for a day, and is renewed when eight hours are left.
            certificate("services", 0.3 * _DAY, _DAY),
        ],
    ),
    "SluiceCertificateExpiresSoon": Case(
        labels={"instance": "a", "use": "rest"},
        fires=certificate("rest", 10 * _DAY, 90 * _DAY),
        after=90,
        quiet=[
            certificate("rest", 30 * _DAY, 90 * _DAY),
            certificate("rest", 3 * _DAY, 7 * _DAY),
        ],
    ),
    "SluiceCertificateNotTakenUp": Case(
        labels={"instance": "a", "use": "services"},
        fires=one(f'sluice_certificate_renewal_pending{{{_A}, use="services"}}', gauge(1)),
        after=35,
        quiet=[
            one(f'sluice_certificate_renewal_pending{{{_A}, use="services"}}', gauge(0)),
            # The other side was being renewed too.
            one(f'sluice_certificate_renewal_pending{{{_A}, use="services"}}', blip(1, 0, 20)),
        ],
    ),
    "SluiceTokenExpiresSoon": Case(
        labels={"recipient": "acme"},
        fires=one('sluice_token_expiry_timestamp_seconds{recipient="acme", token="last"}', gauge(3 * _DAY)),
        after=90,
        quiet=[
            one('sluice_token_expiry_timestamp_seconds{recipient="acme", token="last"}', gauge(30 * _DAY)),
            # Another token takes its place.
            {
                'sluice_token_expiry_timestamp_seconds{recipient="acme", token="next"}': gauge(_DAY),
                'sluice_token_expiry_timestamp_seconds{recipient="acme", token="last"}': gauge(90 * _DAY),
            },
            # It has been over for days: who wanted another one has it.
            one('sluice_token_expiry_timestamp_seconds{recipient="acme", token="last"}', gauge(-3 * _DAY)),
        ],
    ),
    "SluiceRecipientThrottled": Case(
        labels={"recipient": "acme"},
        fires=recipient(60, "throttled", 40),
        after=50,
        quiet=[recipient(90, "throttled", 10), recipient(1, "throttled", 4)],
    ),
    "SluiceRecipientFails": Case(
        labels={"recipient": "acme"},
        fires=recipient(80, "failed", 20),
        after=35,
        quiet=[recipient(95, "failed", 5), recipient(50, "denied", 50)],
    ),
    "SluiceAuditFails": Case(
        labels=_IN_A,
        fires=one(f"sluice_audit_failures_total{{{_A}}}", "0x10 0+1x20"),
        after=20,
        quiet=[one(f"sluice_audit_failures_total{{{_A}}}", gauge(4))],
    ),
    "SluiceAuditDropsEvents": Case(
        labels=_IN_A,
        fires=one(f"sluice_audit_dropped_events_total{{{_A}}}", "0x10 5x60"),
        after=15,
        quiet=[one(f"sluice_audit_dropped_events_total{{{_A}}}", gauge(5))],
    ),
    "SluiceAuditStalls": Case(
        labels=_IN_A,
        fires=one(f"sluice_audit_oldest_wait_seconds{{{_A}}}", "0+60x30"),
        after=5,
        quiet=[
            one(f"sluice_audit_oldest_wait_seconds{{{_A}}}", gauge(1)),
            # A disk that was slow once.
            one(f"sluice_audit_oldest_wait_seconds{{{_A}}}", blip(20, 0, 1)),
        ],
    ),
    "SluiceAuditBacklog": Case(
        labels=_IN_A,
        fires=one(f"sluice_audit_backlog_bytes{{{_A}}}", gauge(6e6)),
        after=5,
        quiet=[one(f"sluice_audit_backlog_bytes{{{_A}}}", gauge(1e6))],
    ),
    "SluiceAuditShippingLate": Case(
        labels=_IN_A,
        fires=one(f"sluice_audit_shipping_backlog_age_seconds{{{_A}}}", gauge(4000)),
        after=15,
        quiet=[one(f"sluice_audit_shipping_backlog_age_seconds{{{_A}}}", gauge(1200))],
    ),
    "SluiceAuditShippingConflict": Case(
        labels={"instance": "a", "reason": "conflict"},
        fires=one(f'sluice_audit_shipping_failures_total{{{_A}, reason="conflict"}}', "0x30 1x60"),
        after=40,
        quiet=[
            one(f'sluice_audit_shipping_failures_total{{{_A}, reason="store"}}', counter(1)),
            one(f'sluice_audit_shipping_failures_total{{{_A}, reason="conflict"}}', gauge(1)),
        ],
    ),
    "SluiceJobsFail": Case(
        labels={"kind": "view"},
        fires=one('sluice_jobs_finished_total{kind="view", outcome="failed"}', "0x30 1x60"),
        after=40,
        quiet=[
            one('sluice_jobs_finished_total{kind="view", outcome="retried"}', counter(1)),
            one('sluice_jobs_finished_total{kind="view", outcome="failed"}', gauge(1)),
        ],
    ),
    "SluiceJobsLate": Case(
        labels={"kind": "usage"},
        fires=one(f'sluice_jobs_oldest_queued_seconds{{{_A}, kind="usage"}}', gauge(5000)),
        after=15,
        quiet=[
            one(f'sluice_jobs_oldest_queued_seconds{{{_A}, kind="usage"}}', gauge(600)),
            one(f'sluice_jobs_oldest_queued_seconds{{{_A}, kind="usage"}}', blip(5000, 0, 5)),
        ],
    ),
    "SluiceJobLeasesLost": Case(
        labels={"kind": "view"},
        fires=one('sluice_jobs_lease_losses_total{kind="view"}', counter(0.2)),
        after=70,
        quiet=[one('sluice_jobs_lease_losses_total{kind="view"}', "0x30 1x600")],
    ),
}
