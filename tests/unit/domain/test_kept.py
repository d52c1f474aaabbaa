from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.kept import Kept


def test_a_value_is_found_until_it_is_replaced():
    kept: Kept[str, int] = Kept(10)
    kept.keep("a", 1, size=4)
    kept.keep("a", 2, size=5)

    assert kept.find("a") == 2
    assert kept.find("b") is None
    assert kept.size == 5


def test_what_was_used_longest_ago_makes_room():
    kept: Kept[str, int] = Kept(10)
    kept.keep("a", 1, size=5)
    kept.keep("b", 2, size=5)
    kept.find("a")
    kept.keep("c", 3, size=5)

    assert (kept.find("a"), kept.find("b"), kept.find("c")) == (1, None, 3)


def test_what_can_never_fit_is_not_kept_and_drops_only_what_it_would_replace():
    kept: Kept[str, int] = Kept(10)
    kept.keep("a", 1, size=5)
    kept.keep("b", 2, size=5)
    kept.keep("b", 3, size=11)

    assert (kept.find("a"), kept.find("b"), kept.size) == (1, None, 5)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12))), st.integers(0, 20))
def test_the_size_is_that_of_what_is_kept_and_never_more_than_fits(kept_in_turn, capacity):
    kept: Kept[int, int] = Kept(capacity)
    for key, size in kept_in_turn:
        kept.keep(key, size, size=size)

        found = [value for number in range(6) if (value := kept.find(number)) is not None]
        assert kept.size == sum(found) <= capacity
