"""Directory access: credentials, and those who give them."""

from __future__ import annotations

from deploy.grafana.panel import Board, Panel, Query, Row, Unit, Variable, quantile, rate, share

_STORAGE = 'storage=~"$storage"'
_ROUTES = 'route=~".*-credentials"'
_ISSUE = 'method="/gateway.v1.Vending/Issue"'
_MINTS = "sluice_credential_mints_total"

_REQUESTS = Row(
    title="Requests for credentials",
    panels=[
        Panel(
            title="Answers",
            description="Good: 200. A 503 with Retry-After is a provider that throttles or is down.",
            unit=Unit.REQUESTS,
            stacked=True,
            queries=[Query(rate("sluice_http_requests_total", _ROUTES, by="status"), "{{status}}")],
        ),
        Panel(
            title="Time of an answer",
            description="Good: half below 25 ms; the slow ones are mints.",
            unit=Unit.SECONDS,
            queries=[
                Query(quantile(0.5, "sluice_http_request_duration_seconds", _ROUTES), "50%"),
                Query(quantile(0.99, "sluice_http_request_duration_seconds", _ROUTES), "99%"),
                Query(quantile(0.99, "sluice_rpc_request_duration_seconds", _ISSUE), "Vending.Issue 99%"),
            ],
        ),
        Panel(
            title="Credentials by source",
            description="Good: memory and Redis; minted once for each window; never stale.",
            unit=Unit.PER_SECOND,
            stacked=True,
            queries=[Query(rate("sluice_credential_requests_total", _STORAGE, by="source"), "{{source}}")],
        ),
    ],
)

_PROVIDERS = Row(
    title="The providers",
    panels=[
        Panel(
            title="Calls by outcome",
            description="Good: minted only. short: credentialLife asks for more than the provider gives.",
            unit=Unit.PER_SECOND,
            queries=[Query(rate(_MINTS, _STORAGE, by="storage, outcome"), "{{storage}} {{outcome}}")],
        ),
        Panel(
            title="Throttled",
            description="Share of the calls that were turned away. Good: 0. Above 10% an alert fires.",
            unit=Unit.SHARE,
            queries=[
                Query(
                    share(
                        rate(_MINTS, _STORAGE, 'outcome="throttled"', by="storage"),
                        rate(_MINTS, _STORAGE, by="storage"),
                    ),
                    "{{storage}}",
                )
            ],
        ),
        Panel(
            title="Time of a call",
            description="Good: below a second.",
            unit=Unit.SECONDS,
            queries=[
                Query(
                    quantile(0.5, "sluice_credential_mint_duration_seconds", _STORAGE, by="storage"),
                    "{{storage}} 50%",
                ),
                Query(
                    quantile(0.99, "sluice_credential_mint_duration_seconds", _STORAGE, by="storage"),
                    "{{storage}} 99%",
                ),
            ],
        ),
        Panel(
            title="Asked for ahead of time",
            description="Refreshes in the background, and waits for another replica's mint. Good: "
            "refreshes keep mints "
            "out of recipients' way; waits are short and rare.",
            unit=Unit.PER_SECOND,
            queries=[
                Query(rate("sluice_credential_refreshes_total", _STORAGE), "refreshes"),
                Query(rate("sluice_credential_lease_waits_total", _STORAGE), "waits"),
            ],
        ),
        Panel(
            title="Session policy",
            description="AWS: how much of the room for a session policy the last one took. Good: below 80%.",
            unit=Unit.PERCENT,
            queries=[
                Query(
                    f"max by (storage) (sluice_sts_packed_policy_percent{{$scope, {_STORAGE}}})",
                    "{{storage}}",
                )
            ],
        ),
    ],
)

_LIFE = Row(
    title="How long credentials live",
    panels=[
        Panel(
            title="Left when handed out",
            description="By the provider's word. Good: the 1% that have least, at half of credentialLife "
            "or more.",
            unit=Unit.SECONDS,
            width=12,
            queries=[
                Query(
                    quantile(0.01, "sluice_credential_remaining_seconds", _STORAGE, by="storage"),
                    "{{storage}} least",
                ),
                Query(
                    quantile(0.5, "sluice_credential_remaining_seconds", _STORAGE, by="storage"),
                    "{{storage}} half",
                ),
            ],
        ),
        Panel(
            title="Less left than should be",
            description="Share of what was handed out that has less left than half of credentialLife, or "
            "than 20 minutes if that is more. Good: 0.",
            unit=Unit.SHARE,
            width=6,
            queries=[
                Query(
                    share(
                        rate("sluice_credential_near_end_total", _STORAGE, by="storage"),
                        rate("sluice_credential_requests_total", _STORAGE, by="storage"),
                    ),
                    "{{storage}}",
                )
            ],
        ),
        Panel(
            title="Given for too short a time",
            description="Credentials that could not be kept, in an hour. Good: 0.",
            unit=Unit.COUNT,
            width=6,
            queries=[
                Query(
                    "sum by (storage) "
                    f"(increase(sluice_credential_short_lived_total{{$scope, {_STORAGE}}}[1h]))",
                    "{{storage}}",
                )
            ],
        ),
    ],
)

BOARD = Board(
    name="dir-access",
    title="Sluice: directory access",
    description="Credentials: who gets them from where, and what the providers say.",
    rows=[_REQUESTS, _PROVIDERS, _LIFE],
    variables=[Variable("storage", "sluice_credential_requests_total")],
)
