from __future__ import annotations

import pytest

from gateway.services.catalog.list_cache import ListCache, ListKey
from gateway.services.catalog.operation import Operation
from gateway.services.catalog.paging import Page
from gateway.v1 import catalog_pb2 as pb


def key(*, generation="g1", principal="acme", method="ListShares", share="", after="", size=500) -> ListKey:
    return ListKey(generation, principal, Page(Operation(method, share), (after,), size))


def answer(items: int) -> pb.ListSharesResponse:
    return pb.ListSharesResponse(items=[pb.Share(name=f"s{number}") for number in range(items)])


def test_an_answer_is_found_as_it_was_kept():
    cache, kept = ListCache(), answer(3)

    cache.keep(key(), kept)

    assert cache.find(key()) is kept


@pytest.mark.parametrize(
    "other",
    [
        key(generation="g2"),
        key(principal="other"),
        key(method="ListSchemas"),
        key(share="s"),
        key(after="a"),
        key(size=1),
    ],
)
def test_an_answer_is_found_only_for_what_it_depends_on(other):
    cache = ListCache()
    cache.keep(key(), answer(1))

    assert cache.find(other) is None


def test_the_least_recently_used_goes_first():
    cache = ListCache(capacity=8)
    cache.keep(key(principal="a"), answer(3))
    cache.keep(key(principal="b"), answer(3))
    cache.find(key(principal="a"))

    cache.keep(key(principal="c"), answer(3))

    assert cache.find(key(principal="b")) is None
    assert cache.find(key(principal="a")) is not None
    assert cache.find(key(principal="c")) is not None


def test_what_is_larger_than_all_the_room_is_not_kept():
    cache = ListCache(capacity=2)

    cache.keep(key(), answer(5))

    assert cache.find(key()) is None


def test_empty_answers_take_room_too():
    cache = ListCache(capacity=3)
    for number in range(10):
        cache.keep(key(principal=str(number)), answer(0))

    assert sum(cache.find(key(principal=str(number))) is not None for number in range(10)) == 3
