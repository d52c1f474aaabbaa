from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.config.broken import Broken
from gateway.config.path import Path

paths = st.lists(st.sampled_from(["a", "b", 0, 1]), max_size=4).map(tuple)


def is_at_or_above(one: Path, other: Path) -> bool:
    return other[: len(one)] == one


@given(st.lists(paths, max_size=4), paths)
def test_a_path_stands_where_nothing_is_broken_at_or_above_it(broken, path):
    assert Broken(broken).leaves(path) is not any(is_at_or_above(one, path) for one in broken)


@given(st.lists(paths, max_size=4), st.lists(paths, max_size=3))
def test_paths_are_spared_where_nothing_is_broken_below_them_either(broken, asked):
    touched = any(is_at_or_above(one, path) or is_at_or_above(path, one) for one in broken for path in asked)
    assert Broken(broken).spares(*asked) is not touched
