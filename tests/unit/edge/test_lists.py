from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.lists import ListRenderer
from gateway.v1 import catalog_pb2 as pb


def page(*names: str, token: str = "") -> pb.ListSharesResponse:
    return pb.ListSharesResponse(items=[pb.Share(name=name) for name in names], next_page_token=token)


def test_the_last_page_has_no_token() -> None:
    renderer = ListRenderer()

    assert json.loads(renderer.render(page())) == {"items": []}
    assert json.loads(renderer.render(page("a", token="t"))) == {
        "items": [{"name": "a"}],
        "nextPageToken": "t",
    }


def test_kinds_of_lists_are_told_apart_even_if_their_bytes_are_the_same() -> None:
    renderer = ListRenderer()
    schemas = pb.ListSchemasResponse(items=[pb.Schema(name="a", share="b")])
    shares = pb.ListSharesResponse.FromString(schemas.SerializeToString())

    assert json.loads(renderer.render(schemas)) == {"items": [{"name": "a", "share": "b"}]}
    assert json.loads(renderer.render(shares)) == {"items": [{"name": "a", "id": "b"}]}


@given(st.lists(st.lists(st.text(max_size=5), max_size=3), max_size=12), st.integers(0, 200))
def test_what_is_remembered_is_what_would_be_rendered(pages: list[list[str]], capacity: int) -> None:
    renderer = ListRenderer(capacity)
    for names in [*pages, *pages]:
        line = renderer.render(page(*names))
        assert line == ListRenderer().render(page(*names))
        assert line.isascii()
        assert len(line.decode().splitlines()) == 1
        assert [item.get("name", "") for item in json.loads(line)["items"]] == names


@pytest.mark.parametrize(("capacity", "remembered"), [(0, []), (100, [99, 98])])
def test_no_more_is_remembered_than_there_is_room_for(capacity: int, remembered: list[int]) -> None:
    renderer = ListRenderer(capacity)
    pages = [page(f"share-{number}") for number in range(100)]
    lines = [renderer.render(each) for each in pages]

    # The latest first: a page that is rendered anew takes the room of others.
    found = [number for number in reversed(range(100)) if renderer.render(pages[number]) is lines[number]]
    assert found == remembered
    assert sum(pages[number].ByteSize() + len(lines[number]) for number in found) <= capacity
