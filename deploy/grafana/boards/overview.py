"""The whole gateway by its golden signals: traffic, errors, latency, saturation."""

from __future__ import annotations

from deploy.grafana.panel import Board, Kind, Panel, Query, Row, Unit, quantile, rate, share

_REQUESTS = "sluice_http_requests_total"
_DURATION = "sluice_http_request_duration_seconds"
# Of these an answer grows with its table.
_BOUNDED = 'route!~".*/query|.*/queries/.*|.*/changes|/files/.*"'
_FAILED = 'status=~"5.."'
# Rules record and fire by namespace, and not by job or replica.
_NAMESPACE = '{namespace=~"$namespace"}'

_FELT = Row(
    title="What recipients feel",
    panels=[
        Panel(
            title="Availability",
            description="Requests that were not answered with a 5xx. Good: 99.9% or more, which is what "
            "we promise.",
            unit=Unit.SHARE,
            kind=Kind.NUMBER,
            width=5,
            steps={0: "red", 0.99: "orange", 0.999: "green"},
            queries=[
                Query(
                    f"1 - ({rate(_REQUESTS, _FAILED)} or vector(0)) / ({rate(_REQUESTS)} > 0)", "availability"
                )
            ],
        ),
        Panel(
            title="Done within a second",
            description="Requests whose answers do not grow with a table. Good: 99% or more, which is "
            "what we promise.",
            unit=Unit.SHARE,
            kind=Kind.NUMBER,
            width=5,
            steps={0: "red", 0.95: "orange", 0.99: "green"},
            queries=[
                Query(
                    share(
                        rate(f"{_DURATION}_bucket", _BOUNDED, 'le="1.0"'),
                        rate(f"{_DURATION}_count", _BOUNDED),
                    ),
                    "within a second",
                )
            ],
        ),
        Panel(
            title="Requests",
            description="All requests. Good: as at this time of other days.",
            unit=Unit.REQUESTS,
            kind=Kind.NUMBER,
            width=4,
            queries=[Query(rate(_REQUESTS), "requests")],
        ),
        Panel(
            title="Budget burns, six hours",
            description="How many times as fast as it may errors use up their budget. Good: below 1.",
            unit=Unit.COUNT,
            kind=Kind.NUMBER,
            width=5,
            steps={0: "green", 1: "orange", 6: "red"},
            queries=[
                Query(
                    f"sum(sluice:http_errors:rate6h{_NAMESPACE}) "
                    f"/ (sum(sluice:http_requests:rate6h{_NAMESPACE}) > 0) / 0.001",
                    "errors",
                ),
                Query(
                    f"sum(sluice:http_slow:rate6h{_NAMESPACE}) "
                    f"/ (sum(sluice:http_bounded:rate6h{_NAMESPACE}) > 0) / 0.01",
                    "slow",
                ),
            ],
        ),
        Panel(
            title="Alerts",
            description="Alerts that fire now. Good: none. Each has a section in docs/runbooks.md.",
            unit=Unit.COUNT,
            kind=Kind.NUMBER,
            width=5,
            steps={0: "green", 1: "red"},
            queries=[
                Query(
                    'count(ALERTS{alertname=~"Sluice.*", alertstate="firing", namespace=~"$namespace"}) '
                    "or vector(0)",
                    "firing",
                )
            ],
        ),
    ],
)

_TRAFFIC = Row(
    title="Traffic",
    panels=[
        Panel(
            title="Requests by route",
            description="What is asked for. Good: no route that suddenly leads.",
            unit=Unit.REQUESTS,
            stacked=True,
            width=6,
            queries=[Query(rate(_REQUESTS, by="route"), "{{route}}")],
        ),
        Panel(
            title="Answers by status",
            description="Good: nearly all 200. 4xx are callers' own, 429 is a rate limit, 499 a caller "
            "that left.",
            unit=Unit.REQUESTS,
            stacked=True,
            width=6,
            queries=[Query(rate(_REQUESTS, by="status"), "{{status}}")],
        ),
        Panel(
            title="Files handed out",
            description="By URL. Good: follows the queries, times the files of their tables.",
            unit=Unit.PER_SECOND,
            width=6,
            queries=[Query(rate("sluice_files_signed_total"), "files")],
        ),
        Panel(
            title="Credentials handed out",
            description="For directories. Good: follows the requests for them.",
            unit=Unit.PER_SECOND,
            width=6,
            queries=[Query(rate("sluice_recipient_credentials_total"), "credentials")],
        ),
    ],
)

_ERRORS = Row(
    title="Errors",
    panels=[
        Panel(
            title="Failed requests by route",
            description="Share of a route's requests that got a 5xx. Good: 0.",
            unit=Unit.SHARE,
            width=6,
            queries=[
                Query(share(rate(_REQUESTS, _FAILED, by="route"), rate(_REQUESTS, by="route")), "{{route}}")
            ],
        ),
        Panel(
            title="Failed calls between services",
            description="gRPC calls that ended otherwise than OK. NOT_FOUND and PERMISSION_DENIED are "
            "answers; "
            "UNAVAILABLE, INTERNAL and DEADLINE_EXCEEDED are ours. Good: none of these three.",
            unit=Unit.REQUESTS,
            width=6,
            queries=[
                Query(
                    rate("sluice_rpc_requests_total", 'code!="OK"', by="method, code"), "{{method}} {{code}}"
                )
            ],
        ),
        Panel(
            title="Refused",
            description="Unknown tokens (401), no grant (403), not there or not granted (404), over the "
            "rate (429). "
            "Good: few. Many 401 from one moment on: a token has ended.",
            unit=Unit.REQUESTS,
            stacked=True,
            width=6,
            queries=[Query(rate(_REQUESTS, 'status=~"401|403|404|429"', by="status"), "{{status}}")],
        ),
        Panel(
            title="Refused calls of platform services",
            description="gRPC calls that were not admitted, by caller: a certificate or token that nobody is "
            "configured for (identity, no name), a method it may not call, its rate, its concurrency. "
            "Good: none.",
            unit=Unit.REQUESTS,
            width=6,
            queries=[
                Query(rate("sluice_rpc_refused_calls_total", by="caller, reason"), "{{caller}} {{reason}}")
            ],
        ),
    ],
)

_LATENCY = Row(
    title="Latency",
    panels=[
        Panel(
            title="Bounded answers",
            description="Lists, metadata, credentials. Good: half below 25 ms, 99% below 250 ms.",
            unit=Unit.SECONDS,
            queries=[
                Query(quantile(0.5, _DURATION, _BOUNDED), "50%"),
                Query(quantile(0.95, _DURATION, _BOUNDED), "95%"),
                Query(quantile(0.99, _DURATION, _BOUNDED), "99%"),
            ],
        ),
        Panel(
            title="99% by route",
            description="Up to the last byte; a query takes as long as its table is large and its client "
            "slow. "
            "Good: each route as on other days.",
            unit=Unit.SECONDS,
            queries=[Query(quantile(0.99, _DURATION, by="route"), "{{route}}")],
        ),
        Panel(
            title="99% by service call",
            description="Where the time of a request goes. Good: Resolve below 10 ms; a stream lasts as "
            "long as its reader.",
            unit=Unit.SECONDS,
            queries=[Query(quantile(0.99, "sluice_rpc_request_duration_seconds", by="method"), "{{method}}")],
        ),
    ],
)

_SATURATION = Row(
    title="Saturation",
    panels=[
        Panel(
            title="Event loop lag, 99%",
            description="How late the loop of a process wakes up. Good: below 10 ms. Above 50 ms "
            "something blocks it.",
            unit=Unit.SECONDS,
            queries=[
                Query(
                    quantile(0.99, "sluice_event_loop_lag_seconds", by="job, instance"),
                    "{{job}} {{instance}}",
                )
            ],
        ),
        Panel(
            title="Processor",
            description="Cores that a process uses. Good: below 0.8 for each worker; Python runs on one "
            "core at a time.",
            unit=Unit.COUNT,
            queries=[
                Query(rate("process_cpu_seconds_total", by="job, instance"), "{{job}} {{instance}}"),
            ],
        ),
        Panel(
            title="Memory",
            description="Resident. Good: level. Snapshot's grows up to snapshots.memory and stays.",
            unit=Unit.BYTES,
            queries=[
                Query(
                    "sum by (job, instance) (process_resident_memory_bytes{$scope})", "{{job}} {{instance}}"
                )
            ],
        ),
        Panel(
            title="File descriptors",
            description="Share of those allowed that are open. Good: below 50%.",
            unit=Unit.SHARE,
            queries=[
                Query(
                    "max by (job, instance) (process_open_fds{$scope} / process_max_fds{$scope})",
                    "{{job}} {{instance}}",
                )
            ],
        ),
        Panel(
            title="Workers",
            description="Workers of edges with http.workers above 1, and how many had to be replaced in "
            "the last hour. "
            "Good: as configured, and none.",
            unit=Unit.COUNT,
            queries=[
                Query("sum by (instance) (sluice_workers{$scope})", "{{instance}} serve"),
                Query(
                    "sum by (instance) (increase(sluice_worker_restarts_total{$scope}[1h]))",
                    "{{instance}} replaced",
                ),
            ],
        ),
        Panel(
            title="Targets",
            description="Processes that answer Prometheus, by job. Good: as many as there are replicas.",
            unit=Unit.COUNT,
            queries=[
                Query(
                    'sum by (job) (up{namespace=~"$namespace", job=~"$job", instance=~"$instance"})',
                    "{{job}}",
                )
            ],
        ),
    ],
)

_STATE = Row(
    title="State",
    panels=[
        Panel(
            title="Generations of the catalog",
            description="Different catalogs in force among the replicas of a job. Good: 1, but for "
            "seconds after a change.",
            unit=Unit.COUNT,
            width=6,
            queries=[
                Query(
                    "count by (job) (count by (job, generation) (sluice_config_generation_info{$scope}))",
                    "{{job}}",
                )
            ],
        ),
        Panel(
            title="Reloads",
            description="Whether a process runs what is in its file: 1, or 0 when it refused it. Good: 1.",
            unit=Unit.COUNT,
            width=6,
            queries=[
                Query(
                    "min by (job, instance) (sluice_config_last_reload_successful{$scope})",
                    "{{job}} {{instance}}",
                )
            ],
        ),
        Panel(
            title="Services within reach",
            description="Share of a job's processes that reach a service they call. Good: 100%. Of one "
            "process only: its network or certificate; of all: that service.",
            unit=Unit.SHARE,
            width=6,
            queries=[
                Query("avg by (job, service) (sluice_service_reachable{$scope})", "{{job}} to {{service}}")
            ],
        ),
        Panel(
            title="Certificates",
            description="How long those that were loaded still live. Good: above a quarter of their life.",
            unit=Unit.SECONDS,
            width=6,
            queries=[
                Query(
                    "min by (job, use) (sluice_certificate_expiry_timestamp_seconds{$scope}) - time()",
                    "{{job}} {{use}}",
                )
            ],
        ),
        Panel(
            title="Certificates, share left",
            description="Of the life of those that were loaded. Good: above 25%. Below it a renewal is late, "
            "however long they live.",
            unit=Unit.SHARE,
            width=6,
            queries=[
                Query(
                    "min by (job, use) ((sluice_certificate_expiry_timestamp_seconds{$scope} - time()) "
                    "/ sluice_certificate_life_seconds{$scope})",
                    "{{job}} {{use}}",
                )
            ],
        ),
        Panel(
            title="Certificates that wait",
            description="Processes whose renewed certificate is not in use, or not everywhere. Good: 0, but "
            "for seconds after a renewal.",
            unit=Unit.COUNT,
            width=6,
            queries=[
                Query(
                    "sum by (job, use) (sluice_certificate_renewal_pending{$scope} > bool 0)",
                    "{{job}} {{use}}",
                )
            ],
        ),
        Panel(
            title="Audit log",
            description="Writes that failed, events that were lost, in five minutes. Good: 0. A failure "
            "refuses grants.",
            unit=Unit.COUNT,
            width=6,
            queries=[
                Query(
                    "sum by (instance) (increase(sluice_audit_failures_total{$scope}[5m]))",
                    "{{instance}} failed",
                ),
                Query(
                    "sum by (instance) (increase(sluice_audit_dropped_events_total{$scope}[5m]))",
                    "{{instance}} lost",
                ),
            ],
        ),
    ],
)

BOARD = Board(
    name="overview",
    title="Sluice: overview",
    description="Traffic, errors, latency and saturation of the whole gateway.",
    rows=[_FELT, _TRAFFIC, _ERRORS, _LATENCY, _SATURATION, _STATE],
)
