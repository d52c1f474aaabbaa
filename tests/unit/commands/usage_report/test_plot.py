from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.usage_report.plot import Bar, columns, round_ticks, rows
from gateway.commands.usage_report.text import number, size


@given(most=st.integers(0, 10**18))
def test_axis_begins_at_zero_and_holds_the_largest_value(most):
    ticks = round_ticks(most)
    assert ticks[0] == 0
    assert ticks[-1] >= most * 0.999
    assert len(ticks) <= 6
    steps = {round((after - before) / ticks[1], 6) for before, after in pairwise(ticks)}
    assert steps == {1.0}


@pytest.mark.parametrize("draw", [columns, rows])
def test_names_cannot_break_out_of_a_plot(draw):
    bars = [Bar(label='<script>"&', value=3, part=1, words="</title><script>")]
    drawn = draw(bars, 'a "title" & more', number)
    assert "<script>" not in drawn
    ET.fromstring(drawn)


def test_bars_are_as_long_as_their_values():
    drawn = ET.fromstring(columns([_bar(10), _bar(5), _bar(0)], "t", number))
    fills = [rect for rect in drawn.iter("rect") if rect.get("class") == "fill"]
    heights = [float(rect.get("height") or "nan") for rect in fills]
    assert heights[1] == pytest.approx(heights[0] / 2, abs=0.1)
    assert heights[2] == 0


def test_axis_of_sizes_has_round_numbers_of_its_unit():
    drawn = columns([_bar(7 * 1024**4)], "t", size, step_of=1024)
    assert ">2.0 TiB<" in drawn
    assert ">8.0 TiB<" in drawn


def test_plot_of_nothing_is_a_plot():
    ET.fromstring(columns([], "t", number))
    ET.fromstring(rows([], "t", number))


def _bar(value: float) -> Bar:
    return Bar(label="a", value=value, words="a")
