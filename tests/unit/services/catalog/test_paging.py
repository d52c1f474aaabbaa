from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.key import Key, Keys
from gateway.errors import InvalidArgument
from gateway.services.catalog.operation import Operation
from gateway.services.catalog.paging import DEFAULT_SIZE, MAX_BYTES, MAX_SIZE, Page, Pages
from gateway.v1 import catalog_pb2 as pb
from tests.cases import each_case

LIST = Operation("ListShares")
PAGES = Pages(Keys(current=Key(id="k", secret=b"s" * 32)))


def open_page(max_results: int | None = None, page_token: str = "") -> Page:
    return PAGES.open(LIST, pb.ListSharesRequest(max_results=max_results, page_token=page_token))


def close_page(page: Page, found: list[str], comment: str = "") -> tuple[list[str], str]:
    shown, token = PAGES.close(
        page, found, lambda name: (name,), lambda name: pb.Share(name=name, comment=comment)
    )
    return [share.name for share in shown], token


def test_a_page_without_wishes_is_the_first_and_of_the_default_size():
    assert open_page() == Page(LIST, ("",), DEFAULT_SIZE)


@each_case(
    ("wanted", "size"), [(0, 0), (1, 1), (999, 999), (1000, 1000), (1001, MAX_SIZE), (2**32 - 1, MAX_SIZE)]
)
def test_a_page_is_as_long_as_asked_for_up_to_a_limit(wanted, size):
    assert open_page(wanted).size == size


def test_one_more_item_than_is_shown_is_looked_for():
    assert open_page(3).limit == 4
    assert open_page(0).limit == 1


def test_the_first_key_of_a_list_can_have_several_parts():
    page = PAGES.open(Operation("ListAllTables"), pb.ListAllTablesRequest(), first=("", ""))
    assert page.after == ("", "")


def test_a_token_of_another_list_is_refused():
    _, token = close_page(Page(Operation("ListSchemas", "s"), ("",), 1), ["a", "b"])
    with pytest.raises(InvalidArgument):
        open_page(1, token)


@settings(deadline=None)
@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)), st.integers(1, 5))
def test_following_the_tokens_shows_every_item_once_and_ends_without_one(names, size):
    seen: list[str] = []
    items, token = sorted(names), ""
    while True:
        page = open_page(size, token)
        (after,) = page.after
        found = [item for item in items if item > after][: page.limit]
        shown, token = close_page(page, found)
        seen += shown
        assert len(shown) == size or not token
        if not token:
            break
    assert seen == items


def test_a_page_of_nothing_has_a_token_only_if_there_is_something():
    page = open_page(0)
    shown, token = close_page(page, ["a"])
    assert shown == []
    assert open_page(5, token).after == page.after
    assert close_page(page, []) == ([], "")


def test_a_page_of_nothing_later_on_stays_where_it_is():
    _, token = close_page(open_page(1), ["a", "b"])
    _, token = close_page(open_page(0, token), ["b"])
    assert open_page(1, token).after == ("a",)


def test_a_page_ends_before_it_is_too_large_for_a_message_and_the_next_goes_on():
    names, comment = [f"s{number}" for number in range(10)], "x" * (MAX_BYTES // 4)

    shown, token = close_page(open_page(), names, comment)

    assert shown == ["s0", "s1", "s2"]
    assert open_page(5, token).after == ("s2",)


def test_an_item_that_is_larger_than_a_page_is_a_page_of_its_own():
    shown, token = close_page(open_page(), ["a", "b"], "x" * (MAX_BYTES + 1))

    assert shown == ["a"]
    assert open_page(5, token).after == ("a",)
