from __future__ import annotations

import pytest

from gateway.bootstrap.supervisor import pause_after


@pytest.mark.parametrize(
    ("deaths", "seconds"), [(1, 0.1), (2, 0.2), (5, 1.6), (7, 6.4), (8, 10), (20, 10), (100_000, 10)]
)
def test_pauses_grow_up_to_a_limit(deaths, seconds):
    assert pause_after(deaths).total_seconds() == seconds
