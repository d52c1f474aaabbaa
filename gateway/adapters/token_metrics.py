"""Metrics of recipients' tokens: when they end, and nothing else of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.ports import Clock

# Those that end soonest, of however many there are.
_MOST: Final = 1000
# Who has had no token for longer is not about to be left without one, and must not crowd out who is.
_TOLD_AFTER_END: Final = timedelta(days=1)

# By recipient, the ends of its tokens; None for one that does not end.
Expiries = Mapping[str, Sequence[datetime | None]]


class TokenMetrics(Collector):
    """Tells of each recipient when the next of its tokens ends, and when the last does."""

    def __init__(self, registry: CollectorRegistry, expiries: Callable[[], Expiries], clock: Clock) -> None:
        self._expiries = expiries
        self._clock = clock
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "sluice_token_expiry_timestamp_seconds",
            "When the next token of a recipient ends, and when the last does; none that never ends.",
            labels=("recipient", "token"),
        )
        for recipient, token, end in self._soonest():
            family.add_metric((recipient, token), end.timestamp())
        yield family

    def _soonest(self) -> Sequence[tuple[str, str, datetime]]:
        now = self._clock()
        ends = (entry for name, known in self._expiries().items() for entry in _ends(name, known, now))
        told = [entry for entry in ends if entry[2] >= now - _TOLD_AFTER_END]
        return sorted(told, key=lambda entry: entry[2])[:_MOST]


def _ends(
    recipient: str, ends: Sequence[datetime | None], now: datetime
) -> Iterator[tuple[str, str, datetime]]:
    known = [end for end in ends if end is not None]
    if upcoming := [end for end in known if end > now]:
        yield recipient, "next", min(upcoming)
    # Who has a token that never ends is never left without one.
    if known and len(known) == len(ends):
        yield recipient, "last", max(known)
