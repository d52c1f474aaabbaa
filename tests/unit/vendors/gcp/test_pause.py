from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gateway.errors import Unavailable
from tests.unit.vendors.gcp.google import NOON
from vendors.gcp.pause import Pause

SECOND = timedelta(seconds=1)


class Time:
    def __init__(self) -> None:
        self.now = NOON
        self.slept: list[float] = []

    def clock(self) -> datetime:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def pause(time):
    return Pause(time.clock, time.sleep, lambda: 0.25)


def test_it_lasts_for_as_long_as_was_asked_for_and_by_no_clock_longer(pause, time):
    assert not pause.left
    pause.extend(7 * SECOND)
    time.now += 3 * SECOND
    assert pause.left == 4 * SECOND
    time.now += 4 * SECOND
    assert not pause.left
    time.now -= timedelta(hours=1)
    assert not pause.left


def test_a_shorter_one_does_not_shorten_it(pause, time):
    pause.extend(7 * SECOND)
    pause.extend(SECOND)
    assert pause.left == 7 * SECOND
    time.now += 3 * SECOND
    pause.extend(5 * SECOND)
    assert pause.left == 5 * SECOND


async def test_its_end_is_waited_for_and_not_by_all_until_the_same_moment(pause, time):
    pause.extend(7 * SECOND)
    assert await pause.wait(7 * SECOND) == 7.25 * SECOND
    assert time.slept == [7.25]
    assert not pause.left


async def test_who_would_wait_too_long_is_told_how_long(pause, time):
    pause.extend(7 * SECOND)
    with pytest.raises(Unavailable) as caught:
        await pause.wait(6 * SECOND)
    assert caught.value.retry_after == 7 * SECOND
    assert time.slept == []


async def test_one_that_is_over_counts_for_a_second_all_the_same(pause, time):
    assert await pause.wait(SECOND) == SECOND
    assert time.slept == [0.25]
    with pytest.raises(Unavailable) as caught:
        await pause.wait(SECOND / 2)
    assert caught.value.retry_after == SECOND
