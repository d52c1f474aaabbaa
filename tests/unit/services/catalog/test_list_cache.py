from __future__ import annotations

from gateway.domain.principal import Principal, PrincipalKind
from gateway.services.catalog.list_cache import ListCache, ListKey
from gateway.services.catalog.operation import Operation
from gateway.services.catalog.paging import Page
from gateway.v1 import catalog_pb2 as pb
from tests.cases import each_case


def key(*, generation="g1", principal="acme", shares=("s",), after="", size=500, **operation) -> ListKey:
    asking = Principal(name=principal, kind=PrincipalKind.RECIPIENT, shares=frozenset(shares))
    return ListKey(
        generation, asking, Page(Operation(**{"method": "ListShares", **operation}), (after,), size)
    )


def answer(items: int) -> pb.ListSharesResponse:
    return pb.ListSharesResponse(items=[pb.Share(name=f"s{number}") for number in range(items)])


def cost(items: int) -> int:
    return answer(items).ByteSize() + 1024


def test_an_answer_is_found_as_it_was_kept():
    cache, kept = ListCache(), answer(3)

    cache.keep(key(), kept)

    assert cache.find(key()) is kept


@each_case(
    "other",
    [
        key(generation="g2"),
        key(principal="other"),
        key(shares=()),
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
    cache = ListCache(capacity=2 * cost(3))
    cache.keep(key(principal="a"), answer(3))
    cache.keep(key(principal="b"), answer(3))
    cache.find(key(principal="a"))

    cache.keep(key(principal="c"), answer(3))

    assert cache.find(key(principal="b")) is None
    assert cache.find(key(principal="a")) is not None
    assert cache.find(key(principal="c")) is not None


def test_what_is_larger_than_all_the_room_is_not_kept():
    cache = ListCache(capacity=cost(5) - 1)

    cache.keep(key(), answer(5))

    assert cache.find(key()) is None


def test_empty_answers_take_room_too():
    cache = ListCache(capacity=3 * cost(0))
    for number in range(10):
        cache.keep(key(principal=str(number)), answer(0))

    assert sum(cache.find(key(principal=str(number))) is not None for number in range(10)) == 3


def test_long_comments_take_the_room_that_they_need():
    cache = ListCache(capacity=100_000)
    for number in range(10):
        share = pb.Share(name="s", comment="x" * 30_000)
        cache.keep(key(size=number), pb.ListSharesResponse(items=[share]))

    assert sum(cache.find(key(size=number)) is not None for number in range(10)) == 3


def test_an_answer_that_is_kept_twice_takes_its_room_once():
    cache = ListCache(capacity=2 * cost(3))
    cache.keep(key(principal="a"), answer(3))
    for _ in range(5):
        cache.keep(key(principal="b"), answer(3))

    assert cache.find(key(principal="a")) is not None
