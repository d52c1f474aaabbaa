"""Draws what each of several peers takes as bars, on a scale of powers of ten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from math import ceil, floor, log10

_WIDTH, _LEFT, _RIGHT, _ROW, _TITLE = 860, 190, 90, 22, 34
_OWN, _PEER, _INK, _GREY, _GRID = "#0072b2", "#bbbbbb", "#222222", "#666666", "#dddddd"
_STYLE = "font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 12px"

# By the title of a group, what each peer takes.
Groups = Mapping[str, Mapping[str, float]]


def to_bars(groups: Groups, *, own: str, unit: str) -> str:
    """Return a picture; the bars of ``own`` stand out."""
    values = [value for group in groups.values() for value in group.values()]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    height = sum(_TITLE + _ROW * len(group) for group in groups.values()) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" style="{_STYLE}">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for power in range(low, high + 1):
        x = _at(10.0**power, low, high)
        parts.append(f'<line x1="{x:.1f}" y1="10" x2="{x:.1f}" y2="{height - 28}" stroke="{_GRID}"/>')
        parts.append(_text(f"{10.0**power:g} {unit}", x, height - 12, anchor="middle", fill=_GREY))
    y = 0
    for title, group in groups.items():
        parts.append(_text(title, 12, y + 24, weight="bold"))
        y += _TITLE
        parts += _bars(group, y, own, low, high)
        y += _ROW * len(group)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bars(group: Mapping[str, float], top: float, own: str, low: int, high: int) -> Iterator[str]:
    for number, (name, value) in enumerate(group.items()):
        y, end = top + number * _ROW, _at(value, low, high)
        colour = _OWN if name == own else _PEER
        yield _text(name, _LEFT - 8, y + 15, anchor="end")
        yield f'<rect x="{_LEFT}" y="{y + 3}" width="{end - _LEFT:.1f}" height="16" fill="{colour}"/>'
        yield _text(f"{value:,.2f}" if value < 100 else f"{value:,.0f}", end + 6, y + 15, fill=_GREY)


def _at(value: float, low: int, high: int) -> float:
    return _LEFT + (log10(value) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)


def _text(text: str, x: float, y: float, *, anchor: str = "start", weight: str = "", fill: str = _INK) -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{bold}>{escape(text)}</text>'
