"""Metrics of each recipient: what it asks for, and what it is given."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.adapters.label_values import BoundedValues

# Of the recipients that a large catalog has, those that come first have series of their own.
_MOST: Final = 1000


class Outcome(StrEnum):
    """What became of a recipient's request."""

    OK = "ok"
    DENIED = "denied"
    THROTTLED = "throttled"
    # Asked for in a way that cannot be answered.
    INVALID = "invalid"
    # The recipient went away before it had its answer.
    GONE = "gone"
    FAILED = "failed"


_BY_STATUS: Final = {
    401: Outcome.DENIED,
    403: Outcome.DENIED,
    404: Outcome.DENIED,
    429: Outcome.THROTTLED,
    499: Outcome.GONE,
}
_FIRST_ERROR, _FIRST_FAILURE = 400, 500


class RecipientMetrics(Collector):
    """Counts by names that the catalog knows, never by a caller's own words."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._names = BoundedValues(_MOST)
        self._recipients: dict[str, _Series] = {}
        registry.register(self)

    def count_request(self, recipient: str, status: int) -> None:
        self._series(recipient).requests[outcome_of(status)] += 1

    def count_files(self, recipient: str, files: int, size: int) -> None:
        series = self._series(recipient)
        series.files += files
        series.file_bytes += size

    def count_credential(self, recipient: str) -> None:
        self._series(recipient).credentials += 1

    def collect(self) -> Iterator[Metric]:
        """Return the series as they stand; called from another thread than those that count."""
        recipients = list(self._recipients.items())
        requests = CounterMetricFamily(
            "sluice_recipient_requests",
            "Requests of a recipient, by what became of them.",
            labels=("recipient", "outcome"),
        )
        for name, series in recipients:
            for outcome, count in series.requests.items():
                requests.add_metric((name, outcome), count)
        yield requests
        yield _family(
            "files", "Files whose URLs were handed out.", [(name, one.files) for name, one in recipients]
        )
        yield _family(
            "file_bytes", "Size of these files.", [(name, one.file_bytes) for name, one in recipients]
        )
        yield _family(
            "credentials", "Credentials handed out.", [(name, one.credentials) for name, one in recipients]
        )

    def _series(self, recipient: str) -> _Series:
        return self._recipients.setdefault(self._names.admit(recipient), _Series())


class _Series:
    def __init__(self) -> None:
        # All from the start, so that what has not happened is 0 and not missing.
        self.requests = dict.fromkeys(Outcome, 0)
        self.files = 0
        self.file_bytes = 0
        self.credentials = 0


def outcome_of(status: int) -> Outcome:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status < _FIRST_ERROR:
        return Outcome.OK
    return Outcome.INVALID if status < _FIRST_FAILURE else Outcome.FAILED


def _family(name: str, help_text: str, counts: list[tuple[str, int]]) -> Metric:
    family = CounterMetricFamily(f"sluice_recipient_{name}", help_text, labels=("recipient",))
    for recipient, count in counts:
        family.add_metric((recipient,), count)
    return family
