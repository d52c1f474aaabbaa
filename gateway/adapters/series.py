"""Plain numbers that the event loop counts up, made into series when they are asked for.

The library's own counters take a lock each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric


class Spread:
    """How many values were at most so large."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> Sequence[tuple[str, float]]:
        bounds = (*(str(bound) for bound in self._bounds), "+Inf")
        return list(zip(bounds, accumulate(self._counts), strict=True))


def counter(name: str, help_text: str, counts: Iterable[tuple[str, int]]) -> Metric:
    """Return a counter with a label for the storage."""
    family = CounterMetricFamily(f"sluice_{name}", help_text, labels=("storage",))
    for storage, count in counts:
        family.add_metric((storage,), count)
    return family


def labelled_counter(
    name: str, help_text: str, label: str, counts: Iterable[tuple[str, Iterable[tuple[str, int]]]]
) -> Metric:
    """Return a counter with a label for the storage, and another."""
    family = CounterMetricFamily(f"sluice_{name}", help_text, labels=("storage", label))
    for storage, by_value in counts:
        for value, count in by_value:
            family.add_metric((storage, str(value)), count)
    return family


def histogram(name: str, help_text: str, spreads: Iterable[tuple[str, Spread]]) -> Metric:
    family = HistogramMetricFamily(f"sluice_{name}", help_text, labels=("storage",))
    for storage, spread in spreads:
        family.add_metric((storage,), spread.buckets(), spread.total)
    return family
