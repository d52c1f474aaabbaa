from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.adapters.cache.backoff import Backoff
from tests.unit.adapters.cache.doubles import Time

SECOND = timedelta(seconds=1)
NONE = timedelta(0)


@pytest.fixture
def backoff(time: Time) -> Backoff:
    return Backoff(lambda: 0.999, time.monotonic)


def test_a_storage_that_never_refused_is_not_left_alone(backoff):
    begun = backoff.begin()
    backoff.succeed(begun)
    assert backoff.wait is None


def test_the_pause_doubles_with_each_refusal_up_to_a_minute(backoff, time):
    pauses = []
    for _ in range(9):
        backoff.refuse(NONE)
        pauses.append(round(backoff.wait.total_seconds()))
        time.move(backoff.wait)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_chance_makes_a_pause_shorter_and_never_by_more_than_half(time):
    backoff = Backoff(lambda: 0.0, time.monotonic)
    backoff.refuse(NONE)
    assert backoff.wait == SECOND / 2


def test_what_the_provider_asks_for_is_kept_to_within_reason(backoff):
    backoff.refuse(20 * SECOND)
    assert backoff.wait == 20 * SECOND
    backoff.refuse(timedelta(days=1))
    assert backoff.wait == timedelta(minutes=5)


def test_a_later_and_shorter_refusal_does_not_end_a_pause(backoff):
    backoff.refuse(20 * SECOND)
    backoff.refuse(SECOND)
    assert backoff.wait == 20 * SECOND


def test_after_the_pause_one_attempt_at_a_time_finds_out(backoff, time):
    backoff.refuse(NONE)
    time.move(SECOND)
    assert backoff.wait is None

    begun = backoff.begin()
    assert backoff.wait == SECOND
    backoff.end()
    assert backoff.wait is None

    backoff.succeed(begun)
    backoff.begin()
    assert backoff.wait is None


def test_success_of_an_attempt_that_began_before_the_refusal_says_nothing(backoff):
    begun = backoff.begin()
    backoff.refuse(NONE)
    backoff.succeed(begun)
    assert backoff.wait is not None


def test_a_wall_clock_that_jumps_back_does_not_lengthen_it(backoff, time):
    backoff.refuse(NONE)
    time.now -= timedelta(days=1)
    time.elapsed += 1
    assert backoff.wait is None
