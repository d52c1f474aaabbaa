from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.snapshot.answer.order import order_of, page_rows
from tests.unit.services.snapshot.answer.pages import files_of, many


def vector(place: str):
    return {"storageType": "i", "pathOrInlineDv": place, "sizeInBytes": 1, "cardinality": 1}


def walk(files, kept, count):
    """Return the paths of each page, the last of which has no key after it."""
    pages, after = [], None
    while True:
        rows, after = page_rows(files, kept, after, count)
        pages.append(rows["path"].to_list())
        if after is None:
            return pages


def test_files_come_in_the_order_of_their_paths():
    files = files_of(*({"path": path} for path in ["c", "a", "é", "b", "Z", "p=1/x"]))

    assert walk(files, None, 4) == [["Z", "a", "b", "c"], ["p=1/x", "é"]]


def test_a_last_page_that_is_full_is_known_to_be_the_last():
    assert walk(files_of({"path": "a"}, {"path": "b"}), None, 1) == [["a"], ["b"]]
    assert walk(files_of({"path": "a"}, {"path": "b"}), None, 2) == [["a", "b"]]


def test_no_files_are_an_empty_page():
    assert walk(files_of(), None, 3) == [[]]


def test_files_at_one_path_are_told_apart_by_their_deletion_vectors():
    files = files_of(
        {"path": "a", "deletionVector": vector("2"), "size": 3},
        {"path": "a", "size": 1},
        {"path": "a", "deletionVector": vector("1"), "size": 2},
    )

    first, after = page_rows(files, None, None, 1)
    second, then = page_rows(files, None, after, 1)
    third, end = page_rows(files, None, then, 1)

    assert (after, then, end) == (("a", ""), ("a", "i1"), None)
    assert [rows["size"].to_list() for rows in (first, second, third)] == [[1], [2], [3]]


def test_only_live_and_kept_files_are_paged():
    files = files_of(*({"path": path} for path in "dcba"), live=[True, True, False, True])

    assert walk(files, pl.Series([True, True, True, False]), 1) == [["c"], ["d"]]


def test_a_key_that_is_gone_still_says_where_to_go_on():
    files = files_of({"path": "a"}, {"path": "c"})

    assert page_rows(files, None, ("b", "i9"), 5)[0]["path"].to_list() == ["c"]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.text("ab/é", max_size=3), st.booleans(), st.booleans()), unique_by=lambda row: row[0]
    ),
    st.integers(1, 4),
    st.randoms(),
)
def test_pages_are_all_files_in_order_whichever_way_the_log_was_read(rows, count, random):
    expected = sorted((path for path, live, kept in rows if live and kept), key=str.encode)
    for _ in range(2):
        random.shuffle(rows)
        files = files_of(*({"path": path} for path, _, _ in rows), live=[live for _, live, _ in rows])
        # As refreshes leave it.
        files = replace(files, frame=pl.concat([files.frame.head(2), files.frame.slice(2)]))
        kept = pl.Series([kept for _, _, kept in rows], dtype=pl.Boolean)

        pages = walk(files, kept, count)

        assert [path for page in pages for path in page] == expected
        assert all(len(page) == count for page in pages[:-1])


def test_files_are_sorted_once_for_all_pages():
    files = many(10)
    first = order_of(files)
    walk(files, None, 3)

    assert files.columns.find_order() is first
    assert first.dtype == pl.UInt32


@pytest.mark.parametrize("kept", [1, 7, 50_000])
def test_pages_of_many_rows_of_which_few_are_kept_have_each_of_them_once(kept):
    files = many(100_000)
    mask = pl.select(pl.int_range(100_000) % kept == kept // 2).to_series()
    expected = files.frame.filter(mask)["path"].sort().to_list()

    pages = walk(files, mask, 1 + len(expected) // 3)

    assert [path for page in pages for path in page] == expected


def test_what_grew_is_in_an_order_of_its_own():
    files = files_of({"path": "b"}, {"path": "d"})
    assert walk(files, None, 1) == [["b"], ["d"]]
    grown = replace(
        files,
        frame=pl.concat([files.frame, files_of({"path": "a"}, {"path": "c"}).frame]),
        num_files=4,
        columns=files.columns.grown(),
    )

    assert walk(grown, None, 3) == [["a", "b", "c"], ["d"]]
    assert walk(files, None, 3) == [["b", "d"]]


def test_a_page_goes_on_after_a_file_whose_path_is_there_twice():
    gone = [{"path": "a"}, {"path": "a", "deletionVector": vector("1")}]
    files = files_of(*gone, {"path": "a", "deletionVector": vector("2")}, live=[False, False, True])

    assert [page_rows(files, None, after, 1)[0].height for after in (None, ("a", ""), ("a", "i1"))] == [1] * 3
    assert page_rows(files, None, ("a", "i2"), 1)[0].is_empty()
