"""Recipients: who asks for how much, who is turned away, whose token ends."""

from __future__ import annotations

from deploy.grafana.panel import SCOPE, Board, Kind, Panel, Query, Row, Unit, Variable, rate, share

_RECIPIENT = 'recipient=~"$recipient"'
_REQUESTS = "sluice_recipient_requests_total"


def _top(expr: str) -> str:
    # Grafana draws at most this many lines that can still be told apart.
    return f"topk(10, {expr})"


_ASKED = Row(
    title="What they ask for",
    panels=[
        Panel(
            title="Requests",
            description="The ten that ask most. Good: nobody far above the others, or known to be.",
            unit=Unit.REQUESTS,
            width=12,
            queries=[Query(_top(rate(_REQUESTS, _RECIPIENT, by="recipient")), "{{recipient}}")],
        ),
        Panel(
            title="What became of them",
            description="Of all recipients that are chosen. Good: ok. gone is a client that left before "
            "its answer.",
            unit=Unit.REQUESTS,
            width=12,
            stacked=True,
            queries=[Query(rate(_REQUESTS, _RECIPIENT, by="outcome"), "{{outcome}}")],
        ),
        Panel(
            title="Failed",
            description="Share of a recipient's requests that got a 5xx. Good: nothing to see.",
            unit=Unit.SHARE,
            queries=[
                Query(
                    share(
                        rate(_REQUESTS, _RECIPIENT, 'outcome="failed"', by="recipient"),
                        rate(_REQUESTS, _RECIPIENT, by="recipient"),
                    ),
                    "{{recipient}}",
                )
            ],
        ),
        Panel(
            title="Throttled",
            description="Share of a recipient's requests over its rate. Good: below 1%. More: a rate that "
            "is too low, or "
            "a client that does not wait as Retry-After says.",
            unit=Unit.SHARE,
            queries=[
                Query(
                    share(
                        rate(_REQUESTS, _RECIPIENT, 'outcome="throttled"', by="recipient"),
                        rate(_REQUESTS, _RECIPIENT, by="recipient"),
                    ),
                    "{{recipient}}",
                )
            ],
        ),
        Panel(
            title="Denied",
            description="Asked for what is not there or not granted. Good: few. Many: a share was renamed "
            "or withdrawn.",
            unit=Unit.REQUESTS,
            queries=[
                Query(_top(rate(_REQUESTS, _RECIPIENT, 'outcome="denied"', by="recipient")), "{{recipient}}")
            ],
        ),
    ],
)

_GIVEN = Row(
    title="What they are given",
    panels=[
        Panel(
            title="Files",
            description="By URL. Good: as on other days.",
            unit=Unit.PER_SECOND,
            queries=[
                Query(_top(rate("sluice_recipient_files_total", _RECIPIENT, by="recipient")), "{{recipient}}")
            ],
        ),
        Panel(
            title="Their size",
            description="What recipients may fetch: the stores bill for it. Good: as on other days.",
            unit=Unit.BYTES_PER_SECOND,
            queries=[
                Query(
                    _top(rate("sluice_recipient_file_bytes_total", _RECIPIENT, by="recipient")),
                    "{{recipient}}",
                )
            ],
        ),
        Panel(
            title="Credentials",
            description="Good: a client asks once an hour or so; more often: it does not keep what it is "
            "given.",
            unit=Unit.PER_SECOND,
            queries=[
                Query(
                    _top(rate("sluice_recipient_credentials_total", _RECIPIENT, by="recipient")),
                    "{{recipient}}",
                )
            ],
        ),
    ],
)

_TOKENS = Row(
    title="Tokens",
    panels=[
        Panel(
            title="Until the last token ends",
            description="Without another one the recipient is refused from then on. Good: more than a week.",
            unit=Unit.SECONDS,
            width=12,
            queries=[
                Query(
                    f"bottomk(10, min by (recipient) (sluice_token_expiry_timestamp_seconds{{{SCOPE}, "
                    f"{_RECIPIENT}, "
                    'token="last"}) - time())',
                    "{{recipient}}",
                )
            ],
        ),
        Panel(
            title="Next token to end",
            description="Of each recipient. Good: a newer token is in use by then.",
            unit=Unit.SECONDS,
            kind=Kind.TABLE,
            width=12,
            queries=[
                Query(
                    f"sort(min by (recipient) (sluice_token_expiry_timestamp_seconds{{{SCOPE}, {_RECIPIENT}, "
                    'token="next"}) - time())',
                    "{{recipient}}",
                )
            ],
        ),
    ],
)

BOARD = Board(
    name="recipients",
    title="Sluice: recipients",
    description="What each recipient asks for, is given and is refused.",
    rows=[_ASKED, _GIVEN, _TOKENS],
    variables=[Variable("recipient", "sluice_recipient_requests_total")],
)
