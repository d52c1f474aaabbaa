from __future__ import annotations

import re

from bench.panel_picture import Drawing, Happening, in_unit, to_picture
from tests.cases import each_case


def picture(value: float, unit: str, story: tuple[str, ...] = ()) -> str:
    """Return a panel with one series, as it is drawn."""
    panel = {
        "title": "Panel",
        "type": "timeseries",
        "gridPos": {"x": 0, "y": 1, "w": 8, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit}},
    }
    drawing = Drawing(panel=panel, series={"one": [(0, value), (5, value)]})
    acts = [Happening(name=name, start=0, end=1) for name in story]
    return to_picture("Board", [], [drawing], acts, 60)


def ticks(value: float, unit: str) -> list[str]:
    return re.findall(r'text-anchor="end">([^<]+)<', picture(value, unit).replace(' fill="#666666"', ""))


@each_case(
    ("value", "unit", "expected"),
    [
        (59 * 60, "s", ["0 s", "15 min", "30 min", "45 min", "1 h"]),
        (50, "s", ["0 s", "15 s", "30 s", "45 s", "1 min"]),
        (30 * 60, "s", ["0 s", "10 min", "20 min", "30 min", "40 min"]),
        (50 * 86400, "s", ["0 s", "20 d", "40 d", "60 d", "80 d"]),
        (0.003, "s", ["0 s", "1 ms", "2 ms", "3 ms", "4 ms"]),
        (1, "percentunit", ["0%", "25%", "50%", "75%", "100%"]),
        (1.0000000001, "percentunit", ["0%", "25%", "50%", "75%", "100%"]),
        (7000, "cps", ["0/s", "2 k/s", "4 k/s", "6 k/s", "8 k/s"]),
        (900 * 1024, "bytes", ["0 B", "250 KiB", "500 KiB", "750 KiB", "1000 KiB"]),
    ],
)
def test_an_axis_ends_where_its_ticks_are_round(value, unit, expected):
    assert ticks(value, unit) == expected


def test_nothing_is_written_in_the_plain_unit():
    assert [in_unit(0, unit) for unit in ("s", "bytes", "reqps", "percentunit")] == [
        "0 s",
        "0 B",
        "0/s",
        "0%",
    ]


def test_what_happened_takes_as_many_lines_as_it_needs_and_none_runs_out_of_the_picture():
    text = picture(
        1, "short", tuple(f"something long happens to the gateway {number}" for number in range(9))
    )
    boxes = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="18"', text)
    assert len(boxes) == 9
    assert len({y for _, y, _ in boxes}) > 1
    assert all(int(x) + int(width) <= 24 * 52 + 8 for x, _, width in boxes)
    # The panel begins below the last of them.
    (top,) = re.findall(r'<g transform="translate\(8 (\d+)', text)
    assert int(top) > max(int(y) for _, y, _ in boxes) + 18
