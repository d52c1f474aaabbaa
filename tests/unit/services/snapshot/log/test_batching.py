from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.services.snapshot.log.batching import share_out

_MB = 1024 * 1024


def size(item: int) -> int:
    return item


def shared(sizes: list[int]) -> list[list[int]]:
    return [list(batch) for batch in share_out(sizes, size)]


def test_nothing_is_shared_out_into_no_batch():
    assert shared([]) == []


def test_a_batch_has_so_many_files_at_most():
    assert [len(batch) for batch in shared([1] * 600)] == [256, 256, 88]


def test_a_batch_has_so_many_bytes_unless_one_file_is_more():
    assert shared([4 * _MB, 4 * _MB, 1]) == [[4 * _MB, 4 * _MB], [1]]
    assert shared([1, 9 * _MB, 1]) == [[1], [9 * _MB], [1]]


def test_what_is_to_be_alone_is():
    assert list(share_out([1, 2, 0, 0, 3, 4], size, lambda item: item == 0)) == [[1, 2], [0], [0], [3, 4]]


@given(st.lists(st.integers(0, 10 * _MB), max_size=600))
def test_all_items_are_there_in_their_order_in_batches_that_are_not_too_large(sizes):
    batches = shared(sizes)

    assert [item for batch in batches for item in batch] == sizes
    assert all(batch for batch in batches)
    assert all(sum(batch) <= 8 * _MB or len(batch) == 1 for batch in batches)
    # None could have been joined to the one before it.
    for before, after in pairwise(batches):
        assert len(before) == 256 or sum(before) + after[0] > 8 * _MB
