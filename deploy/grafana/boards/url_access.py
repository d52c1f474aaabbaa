"""URL access: from the Delta log by pages to signed URLs."""

from __future__ import annotations

from deploy.grafana.panel import Board, Panel, Query, Row, Unit, Variable, quantile, rate, share

_STREAMS = 'route=~".*/query|.*/queries/.*|.*/changes"'
_STORAGE = 'storage=~"$storage"'
_RPC = "sluice_rpc_request_duration_seconds"
_LOADS = "sluice_snapshot_load_duration_seconds"

_QUERIES = Row(
    title="Queries",
    panels=[
        Panel(
            title="Queries and changes",
            description="Answers that list files. Good: as on other days.",
            unit=Unit.REQUESTS,
            stacked=True,
            queries=[
                Query(
                    rate("sluice_http_requests_total", _STREAMS, by="route, status"), "{{route}} {{status}}"
                )
            ],
        ),
        Panel(
            title="Time of a query",
            description="Up to its last byte. Good: level. Grows with tables and with slow readers.",
            unit=Unit.SECONDS,
            queries=[
                Query(quantile(0.5, "sluice_http_request_duration_seconds", _STREAMS), "50%"),
                Query(quantile(0.99, "sluice_http_request_duration_seconds", _STREAMS), "99%"),
            ],
        ),
        Panel(
            title="Files handed out",
            description="Files whose URLs went out. Good: follows the queries.",
            unit=Unit.PER_SECOND,
            width=4,
            queries=[Query(rate("sluice_files_signed_total"), "files")],
        ),
        Panel(
            title="Their size",
            description="What recipients may now fetch from the stores, by the log's word. Good: follows "
            "the files.",
            unit=Unit.BYTES_PER_SECOND,
            width=4,
            queries=[Query(rate("sluice_files_signed_bytes_total"), "size")],
        ),
    ],
)

_SIGNING = Row(
    title="Signing",
    panels=[
        Panel(
            title="Signatures by source",
            description="Where the signatures of URLs came from. Good: mostly memory where signing is a "
            "call; "
            "never stale.",
            unit=Unit.PER_SECOND,
            stacked=True,
            queries=[Query(rate("sluice_url_signatures_total", _STORAGE, by="source"), "{{source}}")],
        ),
        Panel(
            title="Pages signed by outcome",
            description="Good: all signed. throttled and unavailable are the provider's, refused is our "
            "identity's.",
            unit=Unit.PER_SECOND,
            queries=[
                Query(
                    rate("sluice_url_signings_total", _STORAGE, by="storage, outcome"),
                    "{{storage}} {{outcome}}",
                )
            ],
        ),
        Panel(
            title="Time of signing a page",
            description="Good: milliseconds where a page is signed with a key; up to a second where each "
            "file is a call.",
            unit=Unit.SECONDS,
            queries=[
                Query(
                    quantile(0.5, "sluice_url_sign_duration_seconds", _STORAGE, by="storage"),
                    "{{storage}} 50%",
                ),
                Query(
                    quantile(0.99, "sluice_url_sign_duration_seconds", _STORAGE, by="storage"),
                    "{{storage}} 99%",
                ),
            ],
        ),
        Panel(
            title="Signing sessions",
            description="What pages are signed with where that is temporary. Good: memory; one minted for "
            "each window.",
            unit=Unit.PER_SECOND,
            queries=[
                Query(rate("sluice_signing_sessions_total", _STORAGE, by="source"), "{{source}}"),
                Query(
                    rate("sluice_signing_session_mints_total", _STORAGE, 'outcome!="minted"', by="outcome"),
                    "asked for, {{outcome}}",
                ),
            ],
        ),
        Panel(
            title="Presign",
            description="Calls of Presign.Sign, each a page. Good: 99% below 100 ms where signatures are "
            "remembered.",
            unit=Unit.SECONDS,
            queries=[
                Query(quantile(0.5, _RPC, 'method="/gateway.v1.Presign/Sign"'), "50%"),
                Query(quantile(0.99, _RPC, 'method="/gateway.v1.Presign/Sign"'), "99%"),
            ],
        ),
        Panel(
            title="Signatures in memory",
            description="Good: level, below cache.urls.memory.",
            unit=Unit.BYTES,
            queries=[Query("sum by (instance) (sluice_url_memory_bytes{$scope})", "{{instance}}")],
        ),
    ],
)

_LOGS = Row(
    title="Reading logs",
    panels=[
        Panel(
            title="Readings",
            description="cold: from a checkpoint on; refresh: new commits alone. Good: few cold ones, "
            "after a start.",
            unit=Unit.PER_SECOND,
            width=6,
            queries=[Query(rate(f"{_LOADS}_count", by="kind"), "{{kind}}")],
        ),
        Panel(
            title="Time of a reading, 99%",
            description="Good: refreshes below 100 ms; a cold reading of a million files takes seconds.",
            unit=Unit.SECONDS,
            width=6,
            queries=[Query(quantile(0.99, _LOADS, by="kind"), "{{kind}}")],
        ),
        Panel(
            title="Looks for a newer version",
            description="Good: listed, or skipped within snapshots.freshness. A failed one fails its query.",
            unit=Unit.PER_SECOND,
            width=6,
            stacked=True,
            queries=[Query(rate("sluice_snapshot_checks_total", by="outcome"), "{{outcome}}")],
        ),
        Panel(
            title="Staleness",
            description="How long ago what was served had been checked. Good: below snapshots.freshness "
            "and a second.",
            unit=Unit.SECONDS,
            width=6,
            queries=[
                Query(quantile(0.5, "sluice_snapshot_staleness_seconds"), "50%"),
                Query(quantile(0.99, "sluice_snapshot_staleness_seconds"), "99%"),
            ],
        ),
        Panel(
            title="Answers that are overdue",
            description="Share of the answers whose version had been checked a minute longer ago than its "
            "freshness allows, or more. Good: 0.",
            unit=Unit.SHARE,
            width=6,
            queries=[
                Query(
                    share(
                        rate("sluice_snapshot_overdue_total"),
                        rate("sluice_snapshot_staleness_seconds_count"),
                    ),
                    "overdue",
                )
            ],
        ),
        Panel(
            title="Snapshots kept",
            description="What they take, and the lines that are kept of them. Good: level, below "
            "snapshots.memory and "
            "snapshots.lines.",
            unit=Unit.BYTES,
            width=6,
            queries=[
                Query("sum by (instance) (sluice_snapshot_memory_bytes{$scope})", "{{instance}} snapshots"),
                Query("sum by (instance) (sluice_snapshot_lines_bytes{$scope})", "{{instance}} lines"),
            ],
        ),
        Panel(
            title="Fallbacks",
            description="Checkpoints or compactions that could not be used, in an hour. Good: 0.",
            unit=Unit.COUNT,
            width=6,
            queries=[
                Query("sum by (reason) (increase(sluice_snapshot_fallbacks_total{$scope}[1h]))", "{{reason}}")
            ],
        ),
    ],
)

_SAVED = Row(
    title="What is saved",
    panels=[
        Panel(
            title="Segments whose lines were kept",
            description="Of up to 1,000 files each. Good: near 100% for tables that are asked for again.",
            unit=Unit.SHARE,
            queries=[
                Query(
                    share(
                        rate("sluice_snapshot_segments_total", 'lines="kept"'),
                        rate("sluice_snapshot_segments_total"),
                    ),
                    "kept",
                )
            ],
        ),
        Panel(
            title="Files that hints leave out",
            description="Of queries with hints. Good: high where recipients filter.",
            unit=Unit.SHARE,
            queries=[
                Query(
                    share(
                        rate("sluice_snapshot_pruned_files_total", 'outcome="dropped"'),
                        rate("sluice_snapshot_pruned_files_total"),
                    ),
                    "left out",
                )
            ],
        ),
        Panel(
            title="Hints",
            description="Predicate hints by whether they could be used. Good: mostly used.",
            unit=Unit.PER_SECOND,
            queries=[Query(rate("sluice_snapshot_hints_total", by="kind, use"), "{{kind}} {{use}}")],
        ),
    ],
)

BOARD = Board(
    name="url-access",
    title="Sluice: URL access",
    description="Queries, the logs behind them and the URLs in their answers.",
    rows=[_QUERIES, _SIGNING, _LOGS, _SAVED],
    variables=[Variable("storage", "sluice_url_signatures_total")],
)
