from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.services.snapshot.log.schema import FILES
from gateway.services.snapshot.state.files import Files, Stock, memory_of
from tests.unit.services.snapshot.state.snapshots import files_of


def numbered(count, live=None):
    frame = pl.DataFrame([{"path": str(number), "size": 1} for number in range(count)], schema=FILES)
    return Files(frame=frame, live=live, num_files=count if live is None else int(live.sum()), size=0)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=8), st.integers(0, 9), st.integers(0, 9))
def test_rows_of_a_slice_are_live_and_kept(flags, offset, length):
    live = pl.Series([is_live for is_live, _ in flags], dtype=pl.Boolean)
    kept = pl.Series([is_kept for _, is_kept in flags], dtype=pl.Boolean)
    files = numbered(len(flags), live)
    expected = [n for n in range(offset, min(offset + length, len(flags))) if flags[n] == (True, True)]

    assert files.rows(offset, length, kept)["path"].to_list() == [str(number) for number in expected]


@pytest.mark.parametrize(("kept", "expected"), [(None, ["1", "2"]), (pl.Series([True, False, True]), ["2"])])
def test_without_a_mask_all_rows_are_live(kept, expected):
    assert numbered(3).rows(1, 5, kept)["path"].to_list() == expected


def test_files_that_share_nothing_are_measured():
    assert files_of(10).memory >= 10 * 200
    assert replace(files_of(10), dropped=10).memory >= 20 * 200


def test_files_that_grew_take_their_stock_and_what_is_their_own():
    files = replace(files_of(10), stock=Stock(1000), grown=70)

    assert (files.own_memory, files.memory) == (70, 1070)


def test_columns_that_a_query_had_made_take_memory():
    files = files_of(100, stock=True)
    before = files.memory
    files.columns.get(["a"], 100, lambda keys, offset, length: {"a": pl.DataFrame({"low": range(length)})})

    assert files.memory - before == 800


def test_parsed_statistics_take_memory():
    frame = numbered(100).frame
    parsed = pl.Series([{"numRecords": number} for number in range(100)])

    assert memory_of(frame, parsed, 0) - memory_of(frame, None, 0) >= 800


def test_what_has_no_row_any_more_takes_memory_even_where_no_row_is_left():
    assert memory_of(numbered(0).frame, None, 10) >= 1000
