"""Draws how what was measured grows with the number of files: small charts in one picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from tests.repository import ROOT

GROWTH = ROOT / "docs" / "growth.svg"

_COLUMNS = 4
_WIDTH, _HEIGHT = 310, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 78, 40
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499")
_INK, _GREY, _GRID = "#222222", "#666666", "#dddddd"
_GATEWAYS = ("all in one, cold", "all in one, warm", "split, cold", "split, warm")
_STYLE = "font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 11px"

# The value at each number of files.
Series = Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    title: str
    unit: Callable[[float], str]
    series: Mapping[str, Series]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Where values are on a scale by powers of ten."""

    low: int
    high: int
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def draw_growth(results: Path, target: Path) -> None:
    """Draw what there are results of."""
    found = {
        name: json.loads(file.read_text())
        for name in ("load", "query", "predicate")
        if (file := results / f"snapshot_{name}.json").exists()
    }
    target.write_text(to_svg(list(_charts(found))))


def to_svg(charts: Sequence[Chart]) -> str:
    rows = -(-len(charts) // _COLUMNS)
    width, height = _COLUMNS * _WIDTH, rows * _HEIGHT + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" style="{_STYLE}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, chart in enumerate(charts):
        x, y = number % _COLUMNS * _WIDTH, number // _COLUMNS * _HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *_draw(chart), "</g>"]
    note = (
        "By the number of files, on scales of powers of ten. Dashed: ten times as much for ten times as many."
    )
    parts += [_text(note, _LEFT, height - 10, fill=_GREY), "</svg>"]
    return "\n".join(parts) + "\n"


def _charts(found: Mapping[str, Any]) -> Iterator[Chart]:
    """Give the charts of the engine alone, then those of the gateway: a row of the picture each."""
    if load := found.get("load"):
        yield from _load_charts(load)
    if predicate := found.get("predicate"):
        kinds = [
            f"{kind}, {state}" for state in ("cold", "warm") for kind in ("by statistics", "by partition")
        ]
        series = {kind: _series(predicate, kind) for kind in kinds}
        yield Chart(title="Keeping 1% by a predicate", unit=in_seconds, series=series)
    if query := found.get("query"):
        yield from _query_charts(query["delta"])
    if predicate := found.get("predicate"):
        series = {name: _series(predicate, f"by statistics, {_turned(name)}, in all") for name in _GATEWAYS}
        yield Chart(title="A query that keeps 1%, in all", unit=in_seconds, series=series)


def _load_charts(load: Mapping[str, Any]) -> Iterator[Chart]:
    figures = {
        "load": ("Reading a log, processor time", in_seconds),
        "refresh": ("One commit more, processor time", in_seconds),
        "peak": ("Reading a log, peak memory", in_bytes),
    }
    for figure, (title, unit) in figures.items():
        series = {name: _series(load, figure, name) for name in ("own", "deltalake")}
        yield Chart(title=title, unit=unit, series=series)


def _turned(gateway: str) -> str:
    name, _, state = gateway.partition(", ")
    return f"{state}, {name}"


def _query_charts(tables: Mapping[str, Any]) -> Iterator[Chart]:
    cpu = {
        name: {size: us * size / 1e6 for size, us in _series(tables, name, "cpu_us").items()}
        for name in _GATEWAYS
    }
    yield Chart(title="A full query, processor time", unit=in_seconds, series=cpu)
    first = {
        name: {size: ms / 1e3 for size, ms in _series(tables, name, "first_ms").items()} for name in _GATEWAYS
    }
    yield Chart(title="A full query, until its first line", unit=in_seconds, series=first)
    peak = {
        name.partition(",")[0]: {size: mb * 1e6 for size, mb in _series(tables, name, "peak_mb").items()}
        for name in _GATEWAYS[1::2]
    }
    yield Chart(title="A full query, peak memory", unit=in_bytes, series=peak)


def _series(figures: Mapping[str, Any], *path: str) -> Series:
    """Return the values at the end of a path below each number of files."""
    found: dict[int, float] = {}
    for size, value in figures.items():
        for key in path:
            value = value[key]  # noqa: PLW2901 -- a step down
        found[int(size)] = value
    return found


def _draw(chart: Chart) -> Iterator[str]:
    sizes = sorted({size for series in chart.series.values() for size in series})
    values = [value for series in chart.series.values() for value in series.values()]
    across = _Axis(
        low=floor(log10(sizes[0])),
        high=max(ceil(log10(sizes[-1])), floor(log10(sizes[0])) + 1),
        start=_LEFT,
        end=_WIDTH - _RIGHT,
    )
    up = _Axis(
        low=floor(log10(min(values))),
        high=max(ceil(log10(max(values))), floor(log10(min(values))) + 1),
        start=_HEIGHT - _BOTTOM,
        end=_TOP,
    )
    yield _text(chart.title, _LEFT, 22, weight="bold", size=13)
    yield from _draw_grid(chart, across, up)
    yield from _draw_linear(across, up, sizes, max(values))
    for number, (name, series) in enumerate(chart.series.items()):
        yield from _draw_legend(number, name)
        yield from _draw_line(series, across, up, _COLOURS[number])


def _draw_grid(chart: Chart, across: _Axis, up: _Axis) -> Iterator[str]:
    for tick in up.ticks:
        y = up.at(tick)
        yield _line(across.start, y, across.end, y, _GRID)
        yield _text(chart.unit(tick), across.start - 6, y + 4, anchor="end", fill=_GREY)
    for tick in across.ticks:
        x = across.at(tick)
        yield _line(x, up.start, x, up.start + 4, _GREY)
        yield _text(_count(tick), x, up.start + 17, anchor="middle", fill=_GREY)
    yield _line(across.start, up.start, across.end, up.start, _GREY)


def _draw_linear(across: _Axis, up: _Axis, sizes: Sequence[int], highest: float) -> Iterator[str]:
    """Draw a line that leads to the highest value in proportion to the files, as far as there is room."""
    first = max(sizes[0], sizes[-1] * 10.0**up.low / highest)
    start = highest * first / sizes[-1]
    yield _line(
        across.at(first), up.at(start), across.at(sizes[-1]), up.at(highest), _GREY, ' stroke-dasharray="3 4"'
    )


def _draw_line(series: Series, across: _Axis, up: _Axis, colour: str) -> Iterator[str]:
    points = [(across.at(size), up.at(value)) for size, value in sorted(series.items())]
    for (x1, y1), (x2, y2) in pairwise(points):
        yield _line(x1, y1, x2, y2, colour, ' stroke-width="2"')
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>'


def _draw_legend(number: int, name: str) -> Iterator[str]:
    x, y = _LEFT - 30 + number % 2 * 130, 40 + number // 2 * 16
    yield f'<circle cx="{x + 4}" cy="{y - 4}" r="4" fill="{_COLOURS[number]}"/>'
    yield _text(name, x + 13, y)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>'


def _text(text: str, x: float, y: float, **style: object) -> str:
    names = {"anchor": "text-anchor", "weight": "font-weight", "size": "font-size", "fill": "fill"}
    given = {"fill": _INK, **style}
    attributes = "".join(f' {names[name]}="{value}"' for name, value in given.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{escape(text)}</text>'


def _count(value: float) -> str:
    return f"{value / 1e6:,.0f}M" if value >= 1e6 else f"{value / 1e3:,.0f}k"


def in_seconds(value: float) -> str:
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor * 0.999:
            return f"{value / factor:,.0f} {unit}"
    return f"{value * 1e9:,.0f} ns"


def in_bytes(value: float) -> str:
    return f"{value / 1e9:,.0f} GB" if value >= 0.999e9 else f"{value / 1e6:,.0f} MB"
