from __future__ import annotations

from datetime import timedelta

from gateway.adapters.cache.promise import before, least_in_need, least_left
from gateway.domain.window import URL_PARTS, window_at
from tests.cases import each_case
from tests.unit.adapters.cache.doubles import HOUR, MINUTE, NOON

DAY = 24 * HOUR


@each_case(
    ("life", "least", "in_need"),
    [
        (HOUR, 45 * MINUTE, 5 * MINUTE),
        (DAY, 18 * HOUR, 5 * MINUTE),
        # Twenty minutes where the life allows.
        (24 * MINUTE, 20 * MINUTE, 5 * MINUTE),
        (8 * MINUTE, 6 * MINUTE, 5 * MINUTE),
        (MINUTE, timedelta(seconds=45), timedelta(seconds=45)),
    ],
)
def test_a_window_promises_as_much_as_its_last_url_has_left(life, least, in_need):
    window = window_at(NOON, life, URL_PARTS, b"k")
    assert least_left(window) == least
    assert least_in_need(window) == in_need


def test_the_window_before_is_the_one_that_a_moment_before_it_lies_in():
    window = window_at(NOON, HOUR, URL_PARTS, b"k")
    moment = window.start - timedelta(seconds=1)
    assert before(window) == window_at(moment, HOUR, URL_PARTS, b"k")
