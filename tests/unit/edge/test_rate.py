from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.rate import Rate
from gateway.edge.rate import RateLimiter
from gateway.errors import Throttled
from gateway.rpc.rate import LocalBuckets

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def limiter(clock: Clock, rate: float = 2, burst: int = 3, capacity: int = 100) -> RateLimiter:
    own = Rate(requests_per_second=rate, burst=burst)
    return RateLimiter(lambda _: own, LocalBuckets(clock, capacity=capacity), capacity=capacity)


def taken(limits: RateLimiter, principal: str = "ann") -> bool:
    try:
        limits.take(principal)
    except Throttled:
        return False
    return True


def test_a_burst_is_admitted_and_the_next_request_waits() -> None:
    limits = limiter(Clock())
    assert [taken(limits) for _ in range(4)] == [True, True, True, False]


def test_the_wait_is_the_time_until_the_next_token() -> None:
    clock = Clock()
    limits = limiter(clock, rate=2, burst=1)
    limits.take("ann")
    clock.advance(0.2)
    with pytest.raises(Throttled) as caught:
        limits.take("ann")
    assert caught.value.retry_after == timedelta(seconds=0.3)


def test_recipients_do_not_share_a_bucket() -> None:
    limits = limiter(Clock(), burst=1)
    assert taken(limits, "ann")
    assert taken(limits, "bob")


def test_a_changed_rate_holds_from_the_next_request() -> None:
    clock, rate = Clock(), [Rate(requests_per_second=1, burst=1)]
    limits = RateLimiter(lambda _: rate[0], LocalBuckets(clock))
    assert [taken(limits) for _ in range(2)] == [True, False]
    rate[0] = Rate(requests_per_second=100, burst=5)
    clock.advance(1)
    assert [taken(limits) for _ in range(6)] == [True] * 5 + [False]


def test_a_clock_that_is_set_back_does_not_empty_the_bucket() -> None:
    clock = Clock()
    limits = limiter(clock, burst=3)
    limits.take("ann")
    clock.advance(-3600)
    assert [taken(limits) for _ in range(3)] == [True, True, False]


def test_what_was_learnt_is_charged_at_admission_and_once() -> None:
    limits = limiter(Clock(), burst=2)
    assert limits.find(b"hash") is None
    limits.learn(b"hash", "ann", charged=None)
    charged = limits.find(b"hash")
    assert charged == "ann"
    limits.take(charged)
    limits.learn(b"hash", "ann", charged=charged)
    with pytest.raises(Throttled):
        limits.take("ann")


def test_two_tokens_of_a_recipient_share_its_bucket() -> None:
    limits = limiter(Clock(), burst=2)
    limits.learn(b"old", "ann", charged=None)
    limits.learn(b"new", "ann", charged=None)
    assert limits.find(b"old") == limits.find(b"new") == "ann"
    with pytest.raises(Throttled):
        limits.take("ann")


def test_what_was_forgotten_is_nobodys() -> None:
    limits = limiter(Clock(), burst=2)
    limits.learn(b"hash", "ann", charged=None)
    limits.forget(b"hash")
    limits.forget(b"never seen")
    assert limits.find(b"hash") is None


def test_a_token_that_passes_to_another_recipient_charges_that_one() -> None:
    limits = limiter(Clock(), burst=1)
    limits.learn(b"hash", "ann", charged=None)
    limits.learn(b"hash", "bob", charged="ann")
    with pytest.raises(Throttled):
        limits.take("bob")


def test_memory_is_bounded_and_the_least_recently_used_goes_first() -> None:
    limits = limiter(Clock(), burst=1, capacity=2)
    for number in range(50):
        limits.learn(str(number).encode(), f"r{number}", charged=None)
    assert len(limits) == 2
    assert limits.find(b"0") is None
    assert limits.find(b"49") == "r49"


@given(
    steps=st.lists(st.floats(min_value=0, max_value=5), max_size=60),
    rate=st.floats(min_value=0.1, max_value=50),
    burst=st.integers(min_value=1, max_value=20),
)
def test_never_more_than_the_burst_and_what_the_time_earns(
    steps: list[float], rate: float, burst: int
) -> None:
    clock = Clock()
    limits = limiter(clock, rate, burst)
    admitted = 0
    for step in steps:
        clock.advance(step)
        admitted += taken(limits)
    elapsed = (clock.now - NOON).total_seconds()
    assert admitted <= burst + rate * elapsed + 1e-6


@given(
    steps=st.lists(st.floats(min_value=0, max_value=0.5), min_size=1, max_size=40),
    rate=st.floats(min_value=0.1, max_value=50),
)
def test_who_waits_as_told_is_admitted(steps: list[float], rate: float) -> None:
    clock = Clock()
    limits = limiter(clock, rate, burst=1)
    for step in steps:
        clock.advance(step)
        try:
            limits.take("ann")
        except Throttled as error:
            clock.advance(error.retry_after.total_seconds() + 1e-5)
            assert taken(limits)
