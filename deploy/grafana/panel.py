"""What a dashboard is made of, in the words of whoever reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

# Stands in every selector for what the variables at the top of a dashboard choose.
SCOPE = "$scope"
_CHOSEN = 'namespace=~"$namespace", job=~"$job", instance=~"$instance"'


class Unit(StrEnum):
    """Grafana's names of units."""

    REQUESTS = "reqps"
    PER_SECOND = "cps"
    SECONDS = "s"
    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"
    SHARE = "percentunit"
    PERCENT = "percent"
    COUNT = "short"


class Kind(StrEnum):
    """Grafana's names of panels."""

    LINES = "timeseries"
    NUMBER = "stat"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Query:
    expr: str
    # Of each series, by its labels.
    legend: str

    @property
    def promql(self) -> str:
        return self.expr.replace(SCOPE, _CHOSEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    title: str
    # What is shown, and what it looks like when all is well.
    description: str
    unit: Unit
    queries: Sequence[Query]
    kind: Kind = Kind.LINES
    width: int = 8
    stacked: bool = False
    # The colours of a number, from which value on.
    steps: Mapping[float, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of a dashboard: the values that a label has."""

    name: str
    metric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    name: str
    title: str
    description: str
    rows: Sequence[Row]
    # Besides namespace, job and replica.
    variables: Sequence[Variable] = ()


def quantile(share: float, metric: str, *labels: str, by: str = "") -> str:
    """Return the value that a share of a histogram's observations stays below."""
    chosen = ", ".join((SCOPE, *labels))
    groups = ", ".join(filter(None, (by, "le")))
    buckets = f"rate({metric}_bucket{{{chosen}}}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by ({groups}) ({buckets}))"


def rate(metric: str, *labels: str, by: str = "") -> str:
    """Return how much a counter grows in a second."""
    chosen = ", ".join((SCOPE, *labels))
    group = f" by ({by})" if by else ""
    return f"sum{group} (rate({metric}{{{chosen}}}[$__rate_interval]))"


def share(part: str, whole: str) -> str:
    """Return a part of a whole, and nothing where there is no whole."""
    return f"{part} / ({whole} > 0)"
