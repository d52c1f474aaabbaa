from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.cache.rhythm import rhythm_of
from tests.cases import each_case
from tests.unit.adapters.cache.doubles import HOUR, MINUTE, NOON

LIVES = st.integers(min_value=2, max_value=12 * 3600).map(lambda seconds: timedelta(seconds=seconds))
MOMENTS = st.integers(min_value=-(10**9), max_value=10**9).map(lambda s: NOON + timedelta(seconds=s / 3))


@given(st.binary(), LIVES, MOMENTS)
def test_windows_follow_each_other_without_a_gap(key, life, now):
    rhythm = rhythm_of(key, life)
    turn = rhythm.turn_at(now)

    assert turn.start <= now < turn.end
    assert turn.end - turn.start == rhythm.width
    assert rhythm.turn_at(turn.end).start == turn.end
    assert rhythm.turn_at(turn.start) == turn


@given(st.binary(), LIVES, st.floats(min_value=0, max_value=1))
def test_what_is_minted_as_early_as_may_be_still_has_enough_left_at_the_end_of_its_window(key, life, part):
    rhythm = rhythm_of(key, life)
    turn = rhythm.turn_at(NOON)
    minted_at = turn.start - rhythm.ahead * part

    assert minted_at + life - turn.end >= rhythm.least


@each_case(
    ("life", "least"),
    [(HOUR, 30 * MINUTE), (12 * HOUR, 6 * HOUR), (30 * MINUTE, 20 * MINUTE), (10 * MINUTE, 5 * MINUTE)],
)
def test_half_the_life_is_left_and_twenty_minutes_where_it_allows(life, least):
    assert rhythm_of(b"k", life).least == least


def test_in_need_five_minutes_do_unless_a_fresh_one_may_have_less():
    assert rhythm_of(b"k", HOUR).stale_least == 5 * MINUTE
    assert rhythm_of(b"k", 4 * MINUTE).stale_least == 2 * MINUTE


def test_keys_turn_at_different_times():
    ends = {rhythm_of(str(number).encode(), HOUR).turn_at(NOON).end for number in range(100)}
    assert len(ends) > 80
