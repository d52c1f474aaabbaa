from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from gateway.services.snapshot.state.columns import Columns


class Maker:
    """Makes a column of row numbers, and notes what for."""

    def __init__(self):
        self.calls = []

    def __call__(self, keys, offset, length):
        self.calls.append((sorted(keys), offset, length))
        return {key: pl.DataFrame({key: range(offset, offset + length)}) for key in keys}


def numbers(columns, maker, *keys, height):
    return {key: frame[key].to_list() for key, frame in columns.get(keys, height, maker).items()}


def test_a_column_is_made_once():
    columns, maker = Columns(), Maker()

    assert numbers(columns, maker, "a", height=3) == {"a": [0, 1, 2]}
    assert numbers(columns, maker, "a", height=3) == {"a": [0, 1, 2]}
    assert maker.calls == [(["a"], 0, 3)]


def test_columns_are_made_together_and_only_those_that_are_missing():
    columns, maker = Columns(), Maker()
    numbers(columns, maker, "a", height=2)

    assert numbers(columns, maker, "a", "b", "c", height=2) == {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    assert maker.calls == [(["a"], 0, 2), (["b", "c"], 0, 2)]


def test_what_has_grown_is_made_for_appended_rows_only():
    before, maker = Columns(), Maker()
    numbers(before, maker, "a", height=2)
    after = before.grown()

    assert numbers(after, maker, "a", "b", height=5) == {"a": [0, 1, 2, 3, 4], "b": [0, 1, 2, 3, 4]}
    assert maker.calls == [(["a"], 0, 2), (["a"], 2, 3), (["b"], 0, 5)]


def test_the_columns_that_others_have_grown_from_stay_as_they_are():
    before, maker = Columns(), Maker()
    numbers(before, maker, "a", height=2)
    numbers(before.grown(), maker, "a", height=5)

    assert numbers(before, maker, "a", height=2) == {"a": [0, 1]}
    assert not before.has("a", 5)
    assert not before.has("b", 1)


def test_many_refreshes_leave_no_trail_of_chunks():
    columns, maker = Columns(), Maker()
    for height in range(1, 200):
        columns = columns.grown()
        frame = columns.get(["a"], height, maker)["a"]

    assert frame["a"].to_list() == list(range(199))
    assert frame.n_chunks() <= 33


def test_memory_counts_what_is_made():
    columns, maker = Columns(), Maker()
    empty = columns.memory
    numbers(columns, maker, "a", height=1000)

    assert empty == 0
    assert columns.memory == columns.grown().memory == 8000


def test_no_columns_are_made_of_nothing():
    maker = Maker()

    assert Columns().get([], 5, maker) == {}
    assert maker.calls == []


def test_threads_that_ask_at_once_share_one_making():
    columns = Columns()
    calls = []

    def make(keys, offset, length):
        calls.append(list(keys))
        return {key: pl.DataFrame({key: range(length)}) for key in keys}

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: columns.get(["a"], 100, make)["a"].height, range(8)))

    assert found == [100] * 8
    assert calls == [["a"]]


def test_a_failure_to_make_a_column_is_not_kept():
    columns, maker = Columns(), Maker()

    def fail(keys, offset, length):
        raise ValueError("no rows")

    with pytest.raises(ValueError, match="no rows"):
        columns.get(["a"], 2, fail)

    assert numbers(columns, maker, "a", height=2) == {"a": [0, 1]}


def test_no_more_columns_are_kept_than_their_number_allows():
    columns, maker = Columns(max_columns=2), Maker()

    found = numbers(columns, maker, "a", "b", "c", height=2)
    again = numbers(columns, maker, "a", "b", "c", height=2)

    assert found == again == {key: [0, 1] for key in "abc"}
    assert maker.calls == [(["a", "b", "c"], 0, 2), (["c"], 0, 2)]
    assert not columns.grown().has("c", 2)
    assert columns.memory == 32


def test_no_more_columns_are_kept_than_their_bytes_allow():
    columns, maker = Columns(max_bytes=40), Maker()
    numbers(columns, maker, "a", "b", height=2)
    grown = columns.grown()

    assert numbers(grown, maker, "a", "b", height=3) == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert (grown.has("a", 3), grown.has("b", 3), grown.has("b", 2)) == (True, False, True)
    assert grown.memory == 40


def test_columns_of_a_snapshot_are_bounded_unless_told_otherwise():
    columns, maker = Columns(), Maker()
    numbers(columns, maker, *(str(number) for number in range(70)), height=1)

    assert columns.memory == 64 * 8


def test_what_is_forgotten_is_made_anew():
    columns, maker = Columns(), Maker()
    numbers(columns, maker, "a", height=2)
    grown = columns.grown()
    columns.clear()

    assert (columns.memory, grown.memory) == (0, 16)
    assert numbers(columns, maker, "a", height=2) == {"a": [0, 1]}
    assert maker.calls == [(["a"], 0, 2)] * 2


def test_what_is_forgotten_while_it_is_made_is_still_returned():
    columns, maker = Columns(), Maker()
    numbers(columns, maker, "a", height=2)

    def make(keys, offset, length):
        columns.clear()
        return maker(keys, offset, length)

    assert numbers(columns, make, "a", "b", height=2) == {"a": [0, 1], "b": [0, 1]}
    assert not columns.has("a", 2)


def test_what_was_made_longest_ago_makes_room_for_what_is_asked_for_now():
    columns, maker = Columns(max_columns=2), Maker()
    for key in "abc":
        numbers(columns, maker, key, height=2)

    assert [columns.has(key, 2) for key in "abc"] == [False, True, True]
    assert numbers(columns, maker, "b", "c", height=2) == {"b": [0, 1], "c": [0, 1]}
    assert len(maker.calls) == 3


def test_as_much_makes_room_as_it_takes_and_what_is_asked_for_with_it_stays():
    columns, maker = Columns(max_bytes=48), Maker()
    for key in "abc":
        numbers(columns, maker, key, height=2)
    grown = columns.grown()
    numbers(grown, maker, "a", "d", height=3)

    assert [grown.has(key, 2) for key in "abcd"] == [True, False, False, True]
    assert grown.memory == 48
    assert columns.memory == 48


def test_what_does_not_fit_at_all_drives_nothing_out_for_good():
    columns, maker = Columns(max_bytes=40), Maker()
    numbers(columns, maker, "a", height=2)
    numbers(columns, maker, "b", height=100)

    assert columns.memory <= 40
    assert numbers(columns, maker, "a", height=2) == {"a": [0, 1]}


def test_the_order_is_made_once_and_apart_from_the_columns():
    columns, maker = Columns(max_columns=1, max_bytes=16), Maker()
    numbers(columns, maker, "a", height=2)
    made = []

    def make():
        made.append(1)
        return pl.Series([1, 0], dtype=pl.UInt32)

    assert columns.find_order() is None
    assert [columns.get_order(make).to_list() for _ in range(2)] == [[1, 0]] * 2
    assert len(made) == 1
    assert (columns.has("a", 2), columns.memory, columns.order_memory) == (True, 16, 8)


def test_an_order_is_of_one_version_and_is_forgotten_with_the_columns():
    columns = Columns()
    columns.get_order(lambda: pl.Series([0], dtype=pl.UInt32))

    assert columns.grown().find_order() is None
    columns.clear()
    assert (columns.find_order(), columns.order_memory) == (None, 0)


def test_threads_that_ask_for_the_order_at_once_share_one_making():
    columns, calls = Columns(), []

    def make():
        calls.append(1)
        return pl.Series(range(100), dtype=pl.UInt32)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: columns.get_order(make).len(), range(8)))

    assert (found, len(calls)) == ([100] * 8, 1)
