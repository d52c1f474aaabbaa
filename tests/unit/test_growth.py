"""How CPU time grows."""

from __future__ import annotations

import pytest

from tests.growth import grows_linearly


@pytest.mark.parametrize(("power", "linear"), [(1, True), (2, False)])
def test_growth_of_a_power_of_the_size_is_linear_or_not(monkeypatch, power, linear):
    seconds = 0.0

    def work(size: int) -> None:
        nonlocal seconds
        seconds += size**power

    monkeypatch.setattr("time.process_time", lambda: seconds)
    assert grows_linearly(work, 100) is linear
