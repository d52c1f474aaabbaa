"""Draws the panels of a dashboard over a time, with what happened meanwhile, as one picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from math import floor, log10
from typing import Any

_COLUMN, _LINE, _GAP = 52, 31, 8
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 10, 28, 54
# Of the title, and of each line of what happened.
_TITLE, _HAPPENING = 36, 22
_INK, _GREY, _GRID, _PAPER, _FAULT = "#222222", "#666666", "#e4e4e4", "#ffffff", "#fff0dc"
_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#aa4499", "#e69f00", "#56b4e9", "#882255", "#117733"),
    *("#999933", "#332288", "#44aa99", "#cc6677"),
)
_STYLE = "font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 11px"
_MOST_NAMES = 6
_WIDEST_NAME = 46

# Seconds since the beginning, and a value.
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """What was done to the gateway, from one second to another."""

    name: str
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One panel with its data."""

    panel: Mapping[str, Any]
    series: Mapping[str, Points] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        return str(self.panel["fieldConfig"]["defaults"]["unit"])

    @property
    def is_stacked(self) -> bool:
        custom = self.panel["fieldConfig"]["defaults"].get("custom", {})
        return bool(custom.get("stacking", {}).get("mode") == "normal")


def to_picture(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    drawings: Sequence[Drawing],
    story: Sequence[Happening],
    span: float,
) -> str:
    """Return the panels where Grafana would put them."""
    width = 24 * _COLUMN + _GAP
    lowest = max(panel["y"] + panel["h"] for panel in (drawing.panel["gridPos"] for drawing in drawings))
    told = list(_told(story, width))
    head = _TITLE + (max((line for line, _, _ in told), default=0) + 1) * _HAPPENING + _GAP
    height = head + lowest * _LINE + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" style="{_STYLE}">',
        f'<rect width="{width}" height="{height}" fill="{_PAPER}"/>',
        _text(title, 12, 24, size=17, weight="bold"),
        *_legend(told),
    ]
    parts += [_heading(row, head) for row in rows]
    for drawing in drawings:
        spot = drawing.panel["gridPos"]
        x, y = spot["x"] * _COLUMN + _GAP, head + spot["y"] * _LINE
        parts += [f'<g transform="translate({x} {y})">', *_draw(drawing, story, span), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _heading(row: Mapping[str, Any], head: float) -> str:
    y = head + row["gridPos"]["y"] * _LINE + 20
    return _text(row["title"], 12, y, size=13, weight="bold", fill=_GREY)


def _told(story: Sequence[Happening], width: float) -> Iterator[tuple[int, float, str]]:
    """Give what is said of each happening, with the line and the place in it."""
    line, x = 0, 12.0
    for number, happening in enumerate(story, start=1):
        text = f"{number} {happening.name}"
        if x + _breadth(text) > width:
            line, x = line + 1, 12.0
        yield line, x, text
        x += _breadth(text) + 8


def _breadth(text: str) -> float:
    return len(text) * 6.2 + 10


def _legend(told: Sequence[tuple[int, float, str]]) -> Iterator[str]:
    for line, x, text in told:
        y = _TITLE + line * _HAPPENING
        yield f'<rect x="{x:.0f}" y="{y}" width="{_breadth(text):.0f}" height="18" fill="{_FAULT}"/>'
        yield _text(text, x + 5, y + 13)


def _draw(drawing: Drawing, story: Sequence[Happening], span: float) -> Iterator[str]:
    spot = drawing.panel["gridPos"]
    width, height = spot["w"] * _COLUMN - _GAP, spot["h"] * _LINE - _GAP
    yield f'<rect width="{width}" height="{height}" fill="none" stroke="{_GRID}"/>'
    yield _text(drawing.panel["title"], 8, 17, weight="bold")
    if drawing.panel["type"] == "stat":
        yield from _draw_number(drawing, width, height)
    elif drawing.panel["type"] == "table":
        yield from _draw_table(drawing, width)
    else:
        frame = _Frame(span=span, top=_highest(drawing), width=width, height=height)
        yield from _draw_lines(drawing, story, frame)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """Where times and values are within a panel."""

    span: float
    top: float
    width: float
    height: float

    def x(self, seconds: float) -> float:
        return _LEFT + seconds / self.span * (self.width - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return self.floor - max(value, 0) / self.top * (self.floor - _TOP)

    @property
    def floor(self) -> float:
        return self.height - _BOTTOM


def _highest(drawing: Drawing) -> float:
    if drawing.is_stacked:
        sums: dict[float, float] = {}
        for points in drawing.series.values():
            for at, value in points:
                sums[at] = sums.get(at, 0) + value
        highest = max(sums.values(), default=0)
    else:
        highest = max((value for points in drawing.series.values() for _, value in points), default=0)
    # What adds up to a whole does so but for the last digits.
    highest = round(highest, 9)
    return _round_up(highest, drawing.unit) if highest > 0 else 1


def _round_up(value: float, unit: str) -> float:
    """Return the next value that makes good ticks in the unit that it is written in."""
    factor, _ = _step(value, unit)
    tens = factor * 10.0 ** floor(log10(value / factor))
    top = next(step * tens for step in (1, 2, 4, 8, 10) if step * tens >= value)
    # Not 80 minutes, whose ticks would be thirds of an hour, but one hour or two.
    larger = [step for step, _ in _SCALES[unit] if factor < step <= top]
    return next(step * larger[-1] for step in (1, 2) if step * larger[-1] >= value) if larger else top


def _draw_lines(drawing: Drawing, story: Sequence[Happening], frame: _Frame) -> Iterator[str]:
    for number, happening in enumerate(story, start=1):
        left, right = frame.x(happening.start), frame.x(happening.end)
        size = f'width="{max(right - left, 3):.1f}" height="{frame.floor - _TOP:.1f}"'
        yield f'<rect x="{left:.1f}" y="{_TOP}" {size} fill="{_FAULT}"/>'
        yield _text(str(number), left + 2, _TOP + 10, fill="#b36b00", size=9)
    for tick in range(5):
        value = frame.top * tick / 4
        y = frame.y(value)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{frame.width - _RIGHT}" y2="{y:.1f}" stroke="{_GRID}"/>'
        yield _text(in_unit(value, drawing.unit), _LEFT - 5, y + 4, anchor="end", fill=_GREY)
    for minute in range(int(frame.span // 60) + 1):
        yield _text(
            f"{minute} min", frame.x(minute * 60), frame.floor + 13, anchor="middle", fill=_GREY, size=9
        )
    if not drawing.series:
        yield _text("nothing to show", frame.width / 2, frame.height / 2, anchor="middle", fill=_GREY)
    yield from _draw_areas(drawing, frame) if drawing.is_stacked else _draw_each(drawing, frame)
    yield from _draw_names(list(drawing.series), frame)


def _draw_each(drawing: Drawing, frame: _Frame) -> Iterator[str]:
    for points, colour in zip(drawing.series.values(), _colours(drawing), strict=True):
        for piece in _pieces(points):
            yield _line([(frame.x(at), frame.y(value)) for at, value in piece], colour)


def _draw_areas(drawing: Drawing, frame: _Frame) -> Iterator[str]:
    below: dict[float, float] = {}
    for points, colour in zip(drawing.series.values(), _colours(drawing), strict=True):
        lower = [(frame.x(at), frame.y(below.get(at, 0))) for at, _ in points]
        for at, value in points:
            below[at] = below.get(at, 0) + value
        upper = [(frame.x(at), frame.y(below[at])) for at, _ in points]
        yield f'<polygon points="{_spots([*upper, *reversed(lower)])}" fill="{colour}" fill-opacity="0.35"/>'
        yield _line(upper, colour)


def _pieces(points: Points) -> Iterator[Points]:
    """Give what lies together: where there was nothing there is no line."""
    if not points:
        return
    step = min((later[0] - earlier[0] for earlier, later in pairwise(points)), default=1)
    piece = [points[0]]
    for point in points[1:]:
        if point[0] - piece[-1][0] > step * 1.5:
            yield piece
            piece = []
        piece.append(point)
    yield piece


def _draw_names(names: Sequence[str], frame: _Frame) -> Iterator[str]:
    shown = list(names[:_MOST_NAMES])
    columns = 3 if frame.width > 500 else 2
    room = (frame.width - 16) / columns
    letters = min(_WIDEST_NAME, int(room / 5.6) - 2)
    for number, name in enumerate(shown):
        x, y = 10 + number % columns * room, frame.height - 27 + number // columns * 11
        more = (
            f" (+{len(names) - len(shown)})" if number == len(shown) - 1 and len(names) > len(shown) else ""
        )
        text = name if len(name) + len(more) <= letters else f"…{name[-(letters - len(more) - 1) :]}"
        colour = _COLOURS[number % len(_COLOURS)]
        yield f'<rect x="{x:.1f}" y="{y - 7:.1f}" width="8" height="4" fill="{colour}"/>'
        yield _text(f"{text}{more}", x + 12, y, size=9.5, fill=_GREY)


def _draw_number(drawing: Drawing, width: float, height: float) -> Iterator[str]:
    for number, (name, points) in enumerate(drawing.series.items()):
        x = 12 + number * width / max(len(drawing.series), 1)
        yield _text(
            in_unit(points[-1][1], drawing.unit),
            x,
            height / 2 + 16,
            size=24,
            weight="bold",
            fill=_COLOURS[number],
        )
        values = [value for _, value in points]
        lowest, highest = (in_unit(value, drawing.unit) for value in (min(values), max(values)))
        worst = f"{name}: {lowest} to {highest}"
        yield _text(worst, x, height - 12, size=9.5, fill=_GREY)
    if not drawing.series:
        yield _text("nothing to show", 12, height / 2 + 14, fill=_GREY)


def _draw_table(drawing: Drawing, width: float) -> Iterator[str]:
    for number, (name, points) in enumerate(drawing.series.items()):
        y = 42 + number * 20
        yield _text(name, 12, y)
        yield _text(in_unit(points[-1][1], drawing.unit), width - 12, y, anchor="end")
        yield f'<line x1="8" y1="{y + 6}" x2="{width - 8}" y2="{y + 6}" stroke="{_GRID}"/>'


def _colours(drawing: Drawing) -> list[str]:
    return [_COLOURS[number % len(_COLOURS)] for number in range(len(drawing.series))]


def _line(spots: Sequence[tuple[float, float]], colour: str) -> str:
    return f'<polyline points="{_spots(spots)}" fill="none" stroke="{colour}" stroke-width="1.4"/>'


def _spots(spots: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)


def _text(text: str, x: float, y: float, **style: object) -> str:
    names = {"anchor": "text-anchor", "weight": "font-weight", "size": "font-size", "fill": "fill"}
    given = {"fill": _INK, **style}
    attributes = "".join(f' {names[name]}="{value}"' for name, value in given.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{escape(text)}</text>'


# From which value on a unit is written how.
_SCALES: Mapping[str, Sequence[tuple[float, str]]] = {
    "percentunit": ((0.01, "%"),),
    "percent": ((1, "%"),),
    "s": ((86400, " d"), (3600, " h"), (60, " min"), (1, " s"), (1e-3, " ms"), (1e-6, " us")),
    "bytes": ((2**30, " GiB"), (2**20, " MiB"), (2**10, " KiB"), (1, " B")),
    "Bps": ((2**30, " GiB/s"), (2**20, " MiB/s"), (2**10, " KiB/s"), (1, " B/s")),
    "reqps": ((1e3, " k/s"), (1, "/s")),
    "cps": ((1e3, " k/s"), (1, "/s")),
    "short": ((1e6, " M"), (1e3, " k"), (1, "")),
}


def in_unit(value: float, unit: str) -> str:
    """Return a value much as Grafana would write it."""
    factor, name = _step(value, unit)
    return f"{value / factor:.4g}{name}"


def _step(value: float, unit: str) -> tuple[float, str]:
    """Return the step of a unit's scale that a value is written in: the smallest for all that is below it."""
    scale = _SCALES[unit]
    plain = next((step for step in scale if step[0] == 1), scale[-1])
    return next((step for step in scale if abs(value) >= step[0]), scale[-1] if value else plain)
