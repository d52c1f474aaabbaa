"""The cache: Redis, and what memory and Redis save."""

from __future__ import annotations

from deploy.grafana.panel import Board, Panel, Query, Row, Unit, Variable, rate, share

_STORAGE = 'storage=~"$storage"'

_REDIS = Row(
    title="Redis",
    panels=[
        Panel(
            title="In use",
            description="Whether a replica uses Redis: 1, or 0. Good: 1. Requests succeed without it.",
            unit=Unit.COUNT,
            queries=[Query("min by (job, instance) (sluice_cache_redis_up{$scope})", "{{job}} {{instance}}")],
        ),
        Panel(
            title="Left alone",
            description="Whether a replica leaves Redis alone after failures. Good: 0.",
            unit=Unit.COUNT,
            queries=[
                Query(
                    "max by (job, instance) (sluice_cache_redis_breaker_open{$scope})", "{{job}} {{instance}}"
                )
            ],
        ),
        Panel(
            title="Errors",
            description="Operations that came to nothing: each is a miss. Good: none. unreadable: what "
            "was there is not "
            "ours, or sealed with a key that is gone.",
            unit=Unit.PER_SECOND,
            queries=[Query(rate("sluice_cache_redis_errors_total", by="reason"), "{{reason}}")],
        ),
    ],
)


def _sources(title: str, description: str, metric: str) -> Panel:
    return Panel(
        title=title,
        description=description,
        unit=Unit.SHARE,
        stacked=True,
        queries=[
            Query(
                f"{rate(metric, _STORAGE, by='source')} / on () group_left () ({rate(metric, _STORAGE)} > 0)",
                "{{source}}",
            )
        ],
    )


_SAVED = Row(
    title="Where answers come from",
    panels=[
        _sources(
            "Credentials",
            "Good: over 90% from memory and Redis.",
            "sluice_credential_requests_total",
        ),
        _sources(
            "Signatures",
            "Good: memory where a signature is a call to the provider; signed, where that costs less than "
            "asking Redis.",
            "sluice_url_signatures_total",
        ),
        _sources(
            "Signing sessions",
            "Good: nearly all from memory.",
            "sluice_signing_sessions_total",
        ),
    ],
)

_REPLICAS = Row(
    title="Between replicas",
    panels=[
        Panel(
            title="Waits for another replica",
            description="For its mint or its signatures. Good: a few when a window turns.",
            unit=Unit.PER_SECOND,
            queries=[
                Query(rate("sluice_credential_lease_waits_total", _STORAGE), "credentials"),
                Query(rate("sluice_url_lease_waits_total", _STORAGE), "signatures"),
            ],
        ),
        Panel(
            title="Calls for each credential",
            description="Calls to the provider for each credential that is handed out. Good: far below 0.1.",
            unit=Unit.COUNT,
            queries=[
                Query(
                    share(
                        rate("sluice_credential_mints_total", _STORAGE, by="storage"),
                        rate("sluice_credential_requests_total", _STORAGE, by="storage"),
                    ),
                    "{{storage}}",
                )
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

BOARD = Board(
    name="cache",
    title="Sluice: cache",
    description="Redis, and what is remembered in memory and there.",
    rows=[_REDIS, _SAVED, _REPLICAS],
    variables=[Variable("storage", "sluice_credential_requests_total")],
)
