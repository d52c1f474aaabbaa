"""Plots as SVG within a page: bars from zero, axes with round numbers, colours that the page sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log, log10
from typing import Final

_WIDTH: Final = 1000
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 12, 14, 34
_HEIGHT: Final = 240
_ROW: Final = 30
_TICKS: Final = 4
_TEN: Final = 10
# Labels that fit side by side below the bars.
_LABELS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value and what it is of. ``part`` of it is shown in another colour, from zero on."""

    label: str
    value: float
    part: float = 0
    # What a pointer over it tells.
    words: str


def columns(bars: Sequence[Bar], title: str, write: Callable[[float], str], *, step_of: int = 10) -> str:
    """Return upright bars in the order of time; an axis to the left says how much they are.

    Its lines are at round numbers of a power of ``step_of``, as they are written.
    """
    most = max((bar.value for bar in bars), default=0)
    unit = float(step_of ** floor(log(most, step_of))) if most >= step_of > _TEN else 1.0
    ticks = [tick * unit for tick in round_ticks(most / unit, least=1.0 if unit == 1.0 else 0.0)]
    plot, inner = _HEIGHT - _TOP - _BOTTOM, _WIDTH - _LEFT - _RIGHT
    step = inner / max(len(bars), 1)
    width = max(step * 0.72, 1.0)
    every = ceil(len(bars) / _LABELS) or 1
    parts = [_open(_HEIGHT, title)]
    for tick in ticks:
        y = _TOP + plot * (1 - tick / ticks[-1])
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(write(tick), _LEFT - 8, y + 4, "end"))
    for number, bar in enumerate(bars):
        x = _LEFT + step * number + (step - width) / 2
        tall, part = plot * bar.value / ticks[-1], plot * bar.part / ticks[-1]
        parts.append(f'<g class="bar"><title>{escape(bar.words)}</title>')
        parts.append(_rect("hit", _LEFT + step * number, _TOP, step, plot))
        parts.append(_rect("fill", x, _TOP + plot - tall, width, tall))
        parts.append(_rect("part", x, _TOP + plot - part, width, part))
        parts.append("</g>")
        if number % every == 0:
            parts.append(_text(bar.label, x + width / 2, _HEIGHT - 12, "middle"))
    return "".join((*parts, "</svg>"))


def rows(bars: Sequence[Bar], title: str, write: Callable[[float], str]) -> str:
    """Return bars that lie, the label before and the value behind each."""
    left, right = 330, 110
    most = max((bar.value for bar in bars), default=0) or 1
    height = _ROW * len(bars) + 8
    parts = [_open(height, title)]
    for number, bar in enumerate(bars):
        y, length = number * _ROW + 4, (_WIDTH - left - right) * bar.value / most
        parts.append(f'<g class="bar"><title>{escape(bar.words)}</title>')
        parts.append(_rect("hit", 0, y - 2, _WIDTH, _ROW - 2))
        parts.append(_text(_short(bar.label), left - 10, y + 17, "end", "name"))
        parts.append(_rect("fill", left, y + 3, max(length, 1.5 if bar.value else 0), _ROW - 12))
        parts.append(_text(write(bar.value), left + length + 8, y + 17, "start", "value"))
        parts.append("</g>")
    return "".join((*parts, "</svg>"))


def round_ticks(most: float, *, least: float = 1.0) -> Sequence[float]:
    """Return where the lines of an axis are that begins at zero and ends at or above a value."""
    if most <= 0:
        return (0.0, 1.0)
    rough = most / _TICKS
    unit = 10.0 ** floor(log10(rough))
    # Nothing is counted in parts, unless it is of a larger unit.
    step = max(next(unit * nice for nice in (1, 2, 5, 10) if unit * nice >= rough * 0.999), least)
    return tuple(step * number for number in range(ceil(most / step * 0.999) + 1))


def _open(height: float, title: str) -> str:
    words = escape(title)
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{words}"><title>{words}</title>'


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}"'
    return f'<rect class="{kind}" {place}/>'


def _text(text: str, x: float, y: float, anchor: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(text: str) -> str:
    longest = 38
    return text if len(text) <= longest else f"…{text[1 - longest :]}"
