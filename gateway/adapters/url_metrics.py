"""Metrics of URLs: where their signatures come from, and what they are signed with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.adapters.credential_metrics import Outcome, Source
from gateway.adapters.series import Spread, counter, histogram, labelled_counter

# From a page of hashes to a call for each of its files.
_DURATIONS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# What became of signing; that something has expired shows when it is handed out.
_SIGNINGS: Final = {
    Outcome.MINTED: "signed",
    Outcome.SHORT: "short",
    Outcome.THROTTLED: "throttled",
    Outcome.UNAVAILABLE: "unavailable",
    Outcome.REFUSED: "refused",
    Outcome.FAILED: "failed",
}


class UrlSource(StrEnum):
    """Where a signature that was handed out came from."""

    MEMORY = "memory"
    REDIS = "redis"
    SIGNED = "signed"
    # Of the window before: the provider signs nothing just now.
    STALE = "stale"


class UrlSeries:
    """The numbers of one storage."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.urls = dict.fromkeys(UrlSource, 0)
        self.signings = dict.fromkeys(_SIGNINGS, 0)
        self.sign_seconds = Spread(_DURATIONS)
        self.sessions = dict.fromkeys(Source, 0)
        self.session_mints = dict.fromkeys(Outcome, 0)
        self.lease_waits = 0

    def count_urls(self, source: UrlSource, count: int) -> None:
        self.urls[source] += count

    def count_signing(self, outcome: Outcome, seconds: float) -> None:
        self.signings[outcome] += 1
        self.sign_seconds.observe(seconds)

    def count_session(self, source: Source) -> None:
        self.sessions[source] += 1

    def count_session_mint(self, outcome: Outcome, seconds: float) -> None:
        self.session_mints[outcome] += 1

    def count_lease_wait(self) -> None:
        self.lease_waits += 1


class UrlMetrics:
    """Counts what is signed. Labels are names of storages and the words above, so they are few."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._storages: dict[str, UrlSeries] = {}
        # Tells how many bytes of signatures are kept.
        self.memory: Callable[[], int] = int
        registry.register(_Urls(self))

    def storage(self, name: str) -> UrlSeries:
        """Return the numbers of a storage, which outlive a reload."""
        return self._storages.setdefault(name, UrlSeries(name))

    def storages(self) -> list[UrlSeries]:
        return list(self._storages.values())


class _Urls(Collector):
    """Makes the numbers into series when they are asked for, in another thread."""

    def __init__(self, metrics: UrlMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        storages = self._metrics.storages()
        yield labelled_counter(
            "url_signatures", "URLs handed out.", "source", ((s.name, s.urls.items()) for s in storages)
        )
        yield labelled_counter(
            "url_signings", "Pages signed.", "outcome", ((s.name, _signings(s)) for s in storages)
        )
        yield histogram(
            "url_sign_duration_seconds", "Of signing a page.", ((s.name, s.sign_seconds) for s in storages)
        )
        yield labelled_counter(
            "signing_sessions",
            "Times that a page was signed with what is made for its window.",
            "source",
            ((s.name, s.sessions.items()) for s in storages),
        )
        yield labelled_counter(
            "signing_session_mints",
            "Provider calls for what a window is signed with.",
            "outcome",
            ((s.name, s.session_mints.items()) for s in storages),
        )
        yield counter(
            "url_lease_waits",
            "Times that a replica waited for what another was making.",
            ((s.name, s.lease_waits) for s in storages),
        )
        yield GaugeMetricFamily(
            "sluice_url_memory_bytes", "Signatures kept in memory.", value=self._metrics.memory()
        )


def _signings(series: UrlSeries) -> Iterable[tuple[str, int]]:
    return ((_SIGNINGS[outcome], count) for outcome, count in series.signings.items())
