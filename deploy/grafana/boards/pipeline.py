"""The pipeline: the audit log on its way, jobs, and the indexes that they make."""

from __future__ import annotations

from deploy.grafana.panel import Board, Panel, Query, Row, Unit, Variable, rate

_KIND = 'kind=~"$kind"'

_JOBS = Row(
    title="Jobs",
    panels=[
        Panel(
            title="Waiting and running",
            description="As workers, and catalogs with views, last saw it. Good: what waits goes down to 0 "
            "between schedules.",
            unit=Unit.COUNT,
            queries=[
                Query(f"max by (kind) (sluice_jobs_queued{{$scope, {_KIND}}})", "{{kind}} waits"),
                Query(f"max by (kind) (sluice_jobs_running{{$scope, {_KIND}}})", "{{kind}} runs"),
            ],
        ),
        Panel(
            title="Longest wait",
            description="Of those that wait. Good: minutes. Above an hour an alert fires.",
            unit=Unit.SECONDS,
            queries=[
                Query(f"max by (kind) (sluice_jobs_oldest_queued_seconds{{$scope, {_KIND}}})", "{{kind}}")
            ],
        ),
        Panel(
            title="Runs by outcome",
            description="In an hour. Good: done. retried will be tried again, failed was given up.",
            unit=Unit.COUNT,
            queries=[
                Query(
                    f"sum by (kind, outcome) (increase(sluice_jobs_finished_total{{$scope, {_KIND}}}[1h]))",
                    "{{kind}} {{outcome}}",
                )
            ],
        ),
        Panel(
            title="Time of a run",
            description="From claim to end. Good: as on other days; grows with the tables.",
            unit=Unit.SECONDS,
            queries=[
                Query(
                    "histogram_quantile(0.5, sum by (kind, le) "
                    f"(increase(sluice_jobs_duration_seconds_bucket{{$scope, {_KIND}}}[1h])))",
                    "{{kind}} 50%",
                ),
                Query(
                    "histogram_quantile(0.99, sum by (kind, le) "
                    f"(increase(sluice_jobs_duration_seconds_bucket{{$scope, {_KIND}}}[1h])))",
                    "{{kind}} 99%",
                ),
            ],
        ),
        Panel(
            title="Leases lost",
            description="Runs that a worker had to give up, in an hour. Good: 0.",
            unit=Unit.COUNT,
            queries=[
                Query(
                    f"sum by (kind) (increase(sluice_jobs_lease_losses_total{{$scope, {_KIND}}}[1h]))",
                    "{{kind}}",
                )
            ],
        ),
    ],
)

_AUDIT = Row(
    title="The audit log on its way",
    panels=[
        Panel(
            title="Events",
            description="On disk. Good: follows the requests; a grant for each query and credential.",
            unit=Unit.PER_SECOND,
            width=6,
            stacked=True,
            queries=[Query(rate("sluice_audit_events_total", by="kind"), "{{kind}}")],
        ),
        Panel(
            title="Waiting to be written",
            description="Good: near 0. From 8 MiB on events of requests are dropped.",
            unit=Unit.BYTES,
            width=6,
            queries=[Query("sum by (instance) (sluice_audit_backlog_bytes{$scope})", "{{instance}}")],
        ),
        Panel(
            title="Longest wait to be written",
            description="Of the oldest event that is not on disk. Good: below two seconds. Above 15 the disk "
            "hangs, and an alert fires.",
            unit=Unit.SECONDS,
            width=6,
            queries=[Query("max by (instance) (sluice_audit_oldest_wait_seconds{$scope})", "{{instance}}")],
        ),
        Panel(
            title="Shipped",
            description="Closed segments that have landed. Good: follows the events.",
            unit=Unit.BYTES_PER_SECOND,
            width=6,
            queries=[Query(rate("sluice_audit_shipped_bytes_total", by="instance"), "{{instance}}")],
        ),
        Panel(
            title="Waiting to be shipped",
            description="Good: a segment or so for each replica.",
            unit=Unit.BYTES,
            width=6,
            queries=[
                Query("sum by (instance) (sluice_audit_shipping_backlog_bytes{$scope})", "{{instance}}")
            ],
        ),
        Panel(
            title="Longest wait to be shipped",
            description="Good: below audit.segmentAge and a minute. Above an hour an alert fires.",
            unit=Unit.SECONDS,
            width=6,
            queries=[
                Query("max by (instance) (sluice_audit_shipping_backlog_age_seconds{$scope})", "{{instance}}")
            ],
        ),
        Panel(
            title="Shipping that failed",
            description="In an hour. Good: 0. conflict: another segment has the name, look at once.",
            unit=Unit.COUNT,
            width=6,
            queries=[
                Query(
                    "sum by (reason) (increase(sluice_audit_shipping_failures_total{$scope}[1h]))",
                    "{{reason}}",
                )
            ],
        ),
    ],
)

_INDEXES = Row(
    title="Indexes",
    panels=[
        Panel(
            title="Versions read by an index",
            description="Of large tables, or why not. Good: used; later and old right after a commit.",
            unit=Unit.PER_SECOND,
            width=12,
            queries=[Query(rate("sluice_snapshot_indexes_total", by="outcome"), "{{outcome}}")],
        ),
        Panel(
            title="Blocks of indexes",
            description="That queries read, or left out by their hints. Good: most left out.",
            unit=Unit.PER_SECOND,
            width=12,
            queries=[Query(rate("sluice_snapshot_index_blocks_total", by="outcome"), "{{outcome}}")],
        ),
    ],
)

BOARD = Board(
    name="pipeline",
    title="Sluice: pipeline",
    description="Jobs, the audit log on its way to them, and the indexes that they make.",
    rows=[_JOBS, _AUDIT, _INDEXES],
    variables=[Variable("kind", "sluice_jobs_queued")],
)
