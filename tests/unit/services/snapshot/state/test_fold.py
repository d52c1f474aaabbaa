from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.snapshot.log.schema import FILES
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.fold import align, fold
from tests.hypothesis_profiles import examples


def frame_of(*lengths: int) -> pl.DataFrame:
    """Return rows that are numbered, in chunks of given lengths."""
    parts, start = [], 0
    for length in lengths:
        rows = [{"path": f"path-of-the-file-{n}", "size": n} for n in range(start, start + length)]
        parts.append(pl.DataFrame(rows, schema=FILES))
        start += length
    return pl.concat(parts, rechunk=False)


def files_of(*lengths: int, gone: int = 0, dropped: int = 0) -> Files:
    """Return files of which the first so many are gone."""
    frame = frame_of(*lengths)
    live = pl.Series([number >= gone for number in range(frame.height)])
    parsed = pl.Series("stats_parsed", [{"numRecords": number} for number in range(frame.height)])
    return Files(
        frame=frame, live=live, parsed=parsed, num_files=frame.height - gone, size=7, dropped=dropped
    )


def numbers_of(files: Files) -> list[int]:
    return files.rows(0, files.height)["size"].to_list()


def test_what_is_in_order_stays_as_it_is():
    files = files_of(1000, 10)

    assert fold(files) is files


def test_a_short_chunk_is_joined_to_one_not_much_longer():
    folded = fold(files_of(1000, 70, 10))

    assert folded.frame["path"].chunk_lengths() == [1000, 80]
    assert folded.parsed is not None
    assert folded.parsed.chunk_lengths()[0] == 1000
    assert folded.stock is None


def test_when_all_is_joined_it_is_a_stock_of_its_own():
    folded = fold(files_of(1000, 200))

    assert folded.frame.n_chunks() == 1
    assert folded.stock is not None
    assert (folded.grown, folded.memory) == (0, folded.stock.memory)


@settings(max_examples=examples(0.3))
@given(st.lists(st.integers(1, 60), min_size=1, max_size=10))
def test_joining_chunks_changes_no_row(lengths):
    files = files_of(*lengths, gone=3 if sum(lengths) > 3 else 0)
    assert files.parsed is not None

    folded = fold(files)

    assert folded.frame.equals(files.frame)
    assert folded.parsed is not None
    assert folded.parsed.equals(files.parsed)
    assert numbers_of(folded) == numbers_of(files)
    # Only the last one is looked at: those before it were, each when it was the last.
    *before, last = folded.frame["path"].chunk_lengths()
    assert not before or before[-1] >= 8 * last


@pytest.mark.parametrize(
    ("gone", "dropped", "is_folded"), [(1501, 0, True), (1400, 0, False), (1400, 300, True)]
)
def test_rows_that_are_gone_are_left_behind_when_they_are_the_most(gone, dropped, is_folded):
    files = files_of(2000, gone=gone, dropped=dropped)

    folded = fold(files)

    assert (folded is not files) is is_folded
    assert numbers_of(folded) == list(range(gone, 2000))
    if is_folded:
        assert (folded.live, folded.dropped, folded.height) == (None, 0, 2000 - gone)
        assert folded.parsed is not None
        assert folded.parsed.struct.field("numRecords").to_list() == list(range(gone, 2000))
        assert (folded.num_files, folded.size) == (files.num_files, files.size)


def test_what_is_left_of_many_rows_is_copied_in_batches():
    # A batch is 50,000.
    files = files_of(110_000, gone=56_000)

    assert numbers_of(fold(files)) == list(range(56_000, 110_000))


def test_files_that_are_all_gone_leave_none():
    folded = fold(files_of(1001, gone=1001))

    assert folded.height == 0
    assert dict(folded.frame.schema) == FILES


def test_columns_are_aligned_to_the_same_chunks_without_joining_them():
    frame = frame_of(30, 20)
    odd = frame.with_columns(tags=pl.repeat(None, 50, dtype=FILES["tags"], eager=True))
    assert len(set(odd.n_chunks("all"))) > 1

    aligned = align(odd)

    assert set(aligned.n_chunks("all")) == {2}
    assert aligned.equals(odd)


def test_more_chunks_than_anybody_wants_to_go_through_become_one():
    assert align(frame_of(*[2] * 40)).n_chunks() == 1
