from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from gateway.adapters.shared_rate import SharedBuckets, new_memory
from gateway.domain.rate import Rate

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
ONE = Rate(requests_per_second=1, burst=1)
WAYS = 32


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def one_set(clock: Clock) -> Iterator[SharedBuckets]:
    """A table in which all recipients collide."""
    buckets = SharedBuckets(new_memory(), clock, sets=1)
    yield buckets
    buckets.close()


def test_recipients_that_collide_do_not_share_a_bucket(one_set):
    assert [one_set.take(f"r{number}", ONE) for number in range(WAYS)] == [None] * WAYS
    assert [one_set.take(f"r{number}", ONE) for number in range(WAYS)] == [timedelta(seconds=1)] * WAYS


def test_in_a_full_set_the_one_that_was_not_used_for_longest_makes_room(one_set, clock):
    for number in range(WAYS):
        one_set.take(f"r{number}", ONE)
        clock.advance(0.001)
    one_set.take("r0", ONE)
    clock.advance(0.001)

    assert one_set.take("late", ONE) is None

    assert one_set.take("late", ONE) is not None
    assert one_set.take("r0", ONE) is not None
    assert one_set.take("r2", ONE) is not None
    # Forgotten, so full again.
    assert one_set.take("r1", ONE) is None


def test_a_full_set_never_throttles_who_has_not_asked(one_set):
    assert all(one_set.take(f"r{number}", ONE) is None for number in range(10 * WAYS))


def test_many_recipients_have_a_bucket_each(clock):
    buckets = SharedBuckets(new_memory(), clock)
    names = [f"recipient {number}" for number in range(10_000)]

    assert all(buckets.take(name, ONE) is None for name in names)
    assert all(buckets.take(name, ONE) is not None for name in names)
    buckets.close()


def test_what_another_left_in_the_memory_is_found(clock):
    memory = new_memory()
    SharedBuckets(memory, clock).take("ann", ONE)
    later = SharedBuckets(memory, clock)

    assert later.take("ann", ONE) == timedelta(seconds=1)
    assert later.take("bob", ONE) is None
    later.close()
