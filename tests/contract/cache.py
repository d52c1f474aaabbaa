"""What the cache relies on, of any store that replicas share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from gateway.adapters.cache.shared import Claim, ClaimState, Lease, SharedCache

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
SOON = timedelta(milliseconds=50)
MINE, TAKEN = Claim(ClaimState.MINE), Claim(ClaimState.TAKEN)
ANN, BOB = Lease(name="n", token=b"ann"), Lease(name="n", token=b"bob")

# Lets a span pass by the store's own clock.
Pass = Callable[[timedelta], Awaitable[None]]


class SharedCacheContract:
    """A suite gives the fixtures ``cache``, which is empty, and ``let_pass``."""

    async def test_there_is_nothing_at_first(self, cache: SharedCache):
        assert await cache.find(["a", "b"]) == [None, None]
        assert await cache.find([]) == []

    async def test_values_are_found_in_the_order_of_their_names(self, cache: SharedCache):
        assert await cache.put("a", b"\x00one", MINUTE)
        assert await cache.put("c", b"three\xff", MINUTE)
        assert await cache.find(["c", "b", "a"]) == [b"three\xff", None, b"\x00one"]

    async def test_many_who_ask_at_once_are_each_given_their_own(self, cache: SharedCache):
        values = {f"n{number}": b"%d" % number * (number + 1) for number in range(150)}
        for name, value in values.items():
            await cache.put(name, value, MINUTE)
        asked = [[name, "nothing", "n0"] for name in values]
        found = await asyncio.gather(*(cache.find(names) for names in asked))
        assert found == [[values[name], None, values["n0"]] for name in values]

    async def test_a_large_value_is_found_as_it_was_put(self, cache: SharedCache):
        value = bytes(range(256)) * 4096
        assert await cache.put("large", value, MINUTE)
        assert await cache.find(["small", "large"]) == [None, value]

    async def test_what_is_put_again_takes_the_place_of_what_was_there(self, cache: SharedCache):
        await cache.put("a", b"one", MINUTE)
        await cache.put("a", b"two", MINUTE)
        assert await cache.find(["a"]) == [b"two"]

    async def test_a_value_is_gone_when_its_time_has_passed(self, cache: SharedCache, let_pass: Pass):
        await cache.put("a", b"one", SOON)
        await let_pass(2 * SOON)
        assert await cache.find(["a"]) == [None]

    async def test_the_first_has_the_lease_and_the_others_know(self, cache: SharedCache):
        claims = await asyncio.gather(
            *(cache.claim(Lease(name="n", token=str(number).encode()), MINUTE) for number in range(20))
        )
        assert claims.count(MINE) == 1
        assert claims.count(TAKEN) == 19

    async def test_leases_of_other_names_are_free(self, cache: SharedCache):
        assert await cache.claim(ANN, MINUTE) == MINE
        assert await cache.claim(Lease(name="m", token=b"bob"), MINUTE) == MINE

    async def test_a_published_value_is_found_and_ends_the_lease(self, cache: SharedCache):
        await cache.claim(ANN, MINUTE)
        assert await cache.publish(ANN, b"value", MINUTE)
        assert await cache.claim(BOB, MINUTE) == Claim(ClaimState.FOUND, b"value")
        assert await cache.find(["n"]) == [b"value"]
        # For one who has no use for the value, there is none, and no lease either.
        assert await cache.claim(Lease(name="n", token=b"bob", seen=b"value"), MINUTE) == MINE

    async def test_a_published_value_lasts_as_long_as_it_is_told(self, cache: SharedCache, let_pass: Pass):
        await cache.claim(ANN, MINUTE)
        await cache.publish(ANN, b"value", SOON)
        await let_pass(2 * SOON)
        assert await cache.claim(BOB, MINUTE) == MINE

    async def test_a_lease_that_was_let_go_is_free(self, cache: SharedCache):
        await cache.claim(ANN, MINUTE)
        await cache.release(BOB)
        assert await cache.claim(BOB, MINUTE) == TAKEN
        await cache.release(ANN)
        assert await cache.claim(BOB, MINUTE) == MINE

    async def test_the_lease_of_one_who_died_is_free_when_its_time_has_passed(
        self, cache: SharedCache, let_pass: Pass
    ):
        await cache.claim(ANN, SOON)
        await let_pass(2 * SOON)
        assert await cache.claim(BOB, MINUTE) == MINE

    async def test_a_lease_is_renewed_by_its_owner_only(self, cache: SharedCache, let_pass: Pass):
        for span in (SECOND, 10 * SECOND, MINUTE):
            ann, bob = (Lease(name=f"n{span}", token=token) for token in (b"ann", b"bob"))
            began = time.monotonic()
            await cache.claim(ann, span)
            await cache.renew(ann, span + MINUTE)
            # On a busy machine the lease may have ended before: then it takes a longer one.
            if time.monotonic() - began < span.total_seconds():
                break
        await cache.renew(bob, SOON)
        await let_pass(span + SOON)
        assert await cache.claim(bob, MINUTE) == TAKEN

    async def test_a_lease_that_is_lost_is_not_renewed(self, cache: SharedCache, let_pass: Pass):
        await cache.claim(ANN, SOON)
        await let_pass(2 * SOON)
        await cache.renew(ANN, MINUTE)
        assert await cache.claim(BOB, MINUTE) == MINE

    async def test_who_lost_the_lease_stores_where_there_is_nothing(self, cache: SharedCache, let_pass: Pass):
        await cache.claim(ANN, SOON)
        await let_pass(2 * SOON)
        await cache.claim(BOB, MINUTE)
        assert await cache.publish(ANN, b"ann's", MINUTE)
        assert await cache.find(["n"]) == [b"ann's"]
        # The lease is still the other's, whose value wins.
        assert await cache.publish(BOB, b"bob's", MINUTE)
        assert await cache.find(["n"]) == [b"bob's"]

    async def test_who_lost_the_lease_stores_nothing_over_another(self, cache: SharedCache, let_pass: Pass):
        await cache.claim(ANN, SOON)
        await let_pass(2 * SOON)
        await cache.claim(BOB, MINUTE)
        await cache.publish(BOB, b"bob's", MINUTE)
        assert not await cache.publish(ANN, b"ann's", MINUTE)
        assert await cache.find(["n"]) == [b"bob's"]

    async def test_a_useless_value_is_replaced_without_the_lease_too(self, cache: SharedCache):
        await cache.put("n", b"useless", MINUTE)
        assert await cache.publish(Lease(name="n", token=b"ann", seen=b"useless"), b"value", MINUTE)
        assert await cache.find(["n"]) == [b"value"]

    async def test_what_is_on_a_list_is_dropped_with_its_leases_and_nothing_else(self, cache: SharedCache):
        for name in ("a", "b", "c"):
            await cache.put(name, b"value", MINUTE)
        await cache.enlist("list", "a", MINUTE)
        await cache.enlist("list", "b", MINUTE)
        await cache.enlist("list", "b", MINUTE)
        await cache.enlist("other", "c", MINUTE)
        await cache.claim(Lease(name="b", token=b"ann", seen=b"value"), MINUTE)
        assert await cache.drop("list") == 2
        assert await cache.find(["a", "b", "c"]) == [None, None, b"value"]
        assert await cache.claim(Lease(name="b", token=b"bob"), MINUTE) == MINE
        assert await cache.drop("list") == 0

    async def test_a_list_of_many_is_dropped(self, cache: SharedCache):
        names = [f"n{number}" for number in range(1201)]
        for name in names:
            await cache.put(name, b"value", MINUTE)
            await cache.enlist("list", name, MINUTE)
        assert await cache.drop("list") == len(names)
        assert set(await cache.find(names) or ()) == {None}

    async def test_a_name_is_on_a_list_for_as_long_as_it_is_told(self, cache: SharedCache, let_pass: Pass):
        await cache.enlist("list", "a", SOON)
        await let_pass(timedelta(seconds=2))
        await cache.enlist("list", "b", MINUTE)
        assert await cache.drop("list") == 1


@pytest.fixture
def let_pass() -> Pass:
    """By a clock that no test can move."""

    async def wait(span: timedelta) -> None:
        await asyncio.sleep(span.total_seconds())

    return wait
