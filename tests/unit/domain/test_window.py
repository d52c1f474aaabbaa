from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.window import CREDENTIAL_PARTS, EPOCH, LEAST_LEFT, URL_PARTS, window_at
from tests.cases import each_case

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)

moments = st.integers(0, 100 * 365 * 24 * 3600 * 10**6).map(
    lambda micros: EPOCH + timedelta(microseconds=micros)
)
lives = st.integers(60, 7 * 24 * 3600).map(lambda seconds: timedelta(seconds=seconds))
parts = st.sampled_from([URL_PARTS, CREDENTIAL_PARTS])


@given(now=moments, life=lives, parts=parts, key=st.binary(max_size=20))
def test_window_contains_the_moment_it_was_asked_for(now, life, parts, key):
    window = window_at(now, life, parts, key)

    assert window.start <= now < window.end


@given(now=moments, life=lives, parts=parts, key=st.binary(max_size=20), share=st.floats(0, 1))
def test_every_moment_of_a_window_gives_that_window(now, life, parts, key, share):
    window = window_at(now, life, parts, key)
    other = window.start + (window.end - window.start - timedelta(microseconds=1)) * share

    assert window_at(other, life, parts, key) == window


@given(now=moments, life=lives, parts=parts, key=st.binary(max_size=20))
def test_windows_follow_each_other_without_gap_or_overlap(now, life, parts, key):
    window = window_at(now, life, parts, key)

    assert window_at(window.end, life, parts, key).start == window.end
    assert window_at(window.start - timedelta(microseconds=1), life, parts, key).end == window.start


@given(now=moments, life=lives, parts=parts, key=st.binary(max_size=20))
def test_what_is_served_has_its_life_but_for_a_window_left(now, life, parts, key):
    window = window_at(now, life, parts, key)
    left = window.expires_at - now

    assert life - life / parts <= life - (window.end - window.start) < left <= life
    if life >= LEAST_LEFT + SECOND:
        assert left >= LEAST_LEFT


@given(now=moments, life=lives, parts=parts, key=st.binary(max_size=20))
def test_times_are_whole_seconds(now, life, parts, key):
    window = window_at(now, life, parts, key)

    assert {window.start.microsecond, window.end.microsecond, window.expires_at.microsecond} == {0}


@each_case(
    ("life", "parts", "width"),
    [
        (timedelta(hours=1), URL_PARTS, timedelta(minutes=15)),
        (timedelta(hours=1), CREDENTIAL_PARTS, timedelta(minutes=30)),
        # A quarter of it would leave less than twenty minutes.
        (timedelta(minutes=24), URL_PARTS, timedelta(minutes=4)),
        # No window leaves twenty minutes of a quarter of an hour.
        (timedelta(minutes=15), CREDENTIAL_PARTS, timedelta(minutes=7, seconds=30)),
        (timedelta(seconds=2), URL_PARTS, SECOND),
    ],
)
def test_window_is_a_part_of_the_life_that_leaves_twenty_minutes_where_it_can(life, parts, width):
    window = window_at(NOON, life, parts, b"key")

    assert window.end - window.start == width


def test_keys_turn_at_different_times():
    starts = {window_at(NOON, timedelta(hours=1), URL_PARTS, b"%d" % key).start for key in range(50)}

    assert len(starts) > 40


def test_fraction_of_a_second_in_the_life_is_not_promised():
    window = window_at(NOON, timedelta(seconds=100.9), URL_PARTS, b"key")

    assert window.expires_at - window.start == timedelta(seconds=100)
