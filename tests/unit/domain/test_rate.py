from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.rate import Bucket, Rate, take

RATE = Rate(requests_per_second=2, burst=3)


def test_an_unknown_bucket_is_a_full_one():
    assert take(None, RATE, 100.0) == (Bucket(2, 100.0), None)


def test_time_brings_tokens_up_to_the_burst():
    assert take(Bucket(0.5, 100.0), RATE, 100.5) == (Bucket(0.5, 100.5), None)
    assert take(Bucket(0.5, 100.0), RATE, 500.0) == (Bucket(2, 500.0), None)


def test_without_a_token_nothing_is_taken_and_the_wait_is_told():
    assert take(Bucket(0.0, 100.0), RATE, 100.25) == (Bucket(0.5, 100.25), timedelta(seconds=0.25))


def test_a_clock_that_is_set_back_does_not_empty_the_bucket():
    assert take(Bucket(2.0, 100.0), RATE, 10.0) == (Bucket(1.0, 10.0), None)


def test_a_smaller_burst_holds_at_once():
    assert take(Bucket(50.0, 100.0), RATE, 100.0) == (Bucket(2.0, 100.0), None)


@given(
    steps=st.lists(st.floats(min_value=0, max_value=5), max_size=60),
    rate=st.floats(min_value=0.1, max_value=50),
    burst=st.integers(min_value=1, max_value=20),
)
def test_never_more_than_the_burst_and_what_the_time_earns(steps, rate, burst):
    limits, bucket, now, taken = Rate(requests_per_second=rate, burst=burst), None, 0.0, 0
    for step in steps:
        now += step
        bucket, wait = take(bucket, limits, now)
        taken += wait is None
    assert taken <= burst + rate * now + 1e-6
