"""Metrics of certificates that are renewed as a process runs."""

from __future__ import annotations

from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge


class Outcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    # It is sound, and some service is not reached with it yet.
    WAITING = "waiting"


class CertificateMetrics:
    """Counts by what a certificate is used for: ``services`` or ``rest``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._renewals = Counter(
            "sluice_certificate_renewals",
            "Renewed certificate files, by whether they could be taken up.",
            ("use", "outcome"),
            registry=registry,
        )
        self._pending = Gauge(
            "sluice_certificate_renewal_pending",
            "Whether certificate files have changed and are not in use, or not everywhere.",
            ("use",),
            registry=registry,
        )

    def show(self, use: str) -> None:
        """Have the series there from the start, so that what has not happened is 0 and not missing."""
        for outcome in Outcome:
            self._renewals.labels(use, outcome)
        self._pending.labels(use)

    def count_renewal(self, use: str, outcome: Outcome) -> None:
        self._renewals.labels(use, outcome).inc()
        self._pending.labels(use).set(outcome is not Outcome.SUCCESS)
