"""Metrics of certificates that are renewed as a process runs."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter

_OUTCOMES: Final = ("success", "failure")


class CertificateMetrics:
    """Counts by what a certificate is used for: ``services`` or ``rest``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._renewals = Counter(
            "sluice_certificate_renewals",
            "Renewed certificate files, by whether they could be taken up.",
            ("use", "outcome"),
            registry=registry,
        )

    def show(self, use: str) -> None:
        """Have the series there from the start, so that what has not happened is 0 and not missing."""
        for outcome in _OUTCOMES:
            self._renewals.labels(use, outcome)

    def count_renewal(self, use: str, *, is_taken_up: bool) -> None:
        self._renewals.labels(use, _OUTCOMES[0] if is_taken_up else _OUTCOMES[1]).inc()
