from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.catalog_index import sort_items
from tests.cases import each_case


class Counted(str):
    """A key that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: str) -> bool:
        self.comparisons += 1
        return str.__lt__(self, other)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.integers()), st.text(max_size=5), st.integers(0, 10))
def test_a_page_is_what_comes_after_the_key_in_order(items, after, limit):
    expected = [items[key] for key in sorted(items) if key > after]
    assert list(sort_items(items).after(after, limit)) == expected[:limit]


@each_case("position", [0, 1, 49_999, 99_998, 99_999])
def test_a_page_costs_a_few_comparisons_wherever_it_starts(position):
    items = {f"{number:06}": number for number in range(100_000)}
    after = Counted(f"{position:06}")
    assert list(sort_items(items).after(after, 2)) == [position + 1, position + 2][: 99_999 - position]
    assert 0 < after.comparisons <= math.ceil(math.log2(len(items)))


def test_a_page_takes_no_more_of_the_list_than_it_shows():
    items = sort_items({f"{number:06}": number for number in range(1_000)})
    assert len(items.after("000500", 7)) == 7
