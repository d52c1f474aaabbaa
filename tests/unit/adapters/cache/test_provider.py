from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.adapters.cache.backoff import Backoff
from gateway.adapters.cache.provider import Provider, outcome_of
from gateway.adapters.credential_metrics import Outcome
from gateway.errors import NotFound, Unavailable, Unsupported
from tests.unit.adapters.cache.doubles import settle

SECOND = timedelta(seconds=1)
SLOW_DOWN = Unavailable("slow down", retry_after=10 * SECOND)


class Counted:
    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def __call__(self, outcome: Outcome, seconds: float) -> None:
        self.outcomes.append(outcome)


@pytest.fixture
def counted():
    return Counted()


@pytest.fixture
def new_provider(counted, time):
    def new(**options):
        backoff = Backoff(lambda: 0.5, time.monotonic)
        return Provider(backoff, counted, monotonic=time.monotonic, **options)

    return new


@pytest.fixture
def asked(new_provider):
    return new_provider()


async def given() -> str:
    return "it"


def failing(exc: Exception):
    async def call() -> str:
        raise exc

    return call


def fine(_: object) -> Outcome:
    return Outcome.MINTED


async def test_what_it_gives_is_judged_and_counted(asked, counted):
    assert await asked.ask(given, lambda text: Outcome.SHORT) == ("it", Outcome.SHORT)
    assert counted.outcomes == [Outcome.SHORT]
    assert not asked.is_resting


@pytest.mark.parametrize(
    ("exc", "outcome", "rests"),
    [
        (SLOW_DOWN, Outcome.THROTTLED, True),
        (Unavailable("no answer"), Outcome.UNAVAILABLE, True),
        (Unsupported("cannot"), Outcome.REFUSED, False),
        (NotFound("gone"), Outcome.REFUSED, False),
        (ZeroDivisionError(), Outcome.FAILED, False),
    ],
)
async def test_what_fails_is_passed_on_counted_and_rested_from_where_that_may_help(
    asked, counted, exc, outcome, rests
):
    with pytest.raises(type(exc)):
        await asked.ask(failing(exc), fine)
    assert counted.outcomes == [outcome]
    assert outcome_of(exc) is outcome
    assert asked.is_resting is rests


async def test_one_that_throttles_is_left_alone_for_as_long_as_it_asks(asked, counted, time):
    with pytest.raises(Unavailable):
        await asked.ask(failing(SLOW_DOWN), fine)
    time.move(9 * SECOND)
    with pytest.raises(Unavailable, match="asked too often") as raised:
        await asked.ask(given, fine)
    assert raised.value.retry_after == SECOND
    # It was not asked, so that there is nothing to count.
    assert counted.outcomes == [Outcome.THROTTLED]
    time.move(SECOND)
    assert await asked.ask(given, fine) == ("it", Outcome.MINTED)


async def test_after_a_failure_those_who_have_something_old_make_do_for_a_while(asked, time):
    with pytest.raises(Unavailable):
        await asked.ask(failing(Unavailable("no answer")), fine)
    time.move(4 * SECOND)
    assert asked.is_resting
    # Who has nothing asks all the same.
    assert await asked.ask(given, fine) == ("it", Outcome.MINTED)
    time.move(SECOND)
    assert not asked.is_resting


async def test_one_that_never_answers_does_not_hold_up_for_ever(new_provider, counted):
    with pytest.raises(Unavailable, match="in time"):
        # By the loop's own clock, which no test can move.
        await new_provider(longest=timedelta(milliseconds=10)).ask(asyncio.Event().wait, fine)
    assert counted.outcomes == [Outcome.UNAVAILABLE]


async def test_who_bounds_its_own_calls_says_how_long_all_of_them_may_take(new_provider, counted):
    async def slow() -> str:
        await asyncio.sleep(0.02)
        return "it"

    provider = new_provider(longest=timedelta(milliseconds=10))
    assert await provider.ask(slow, fine, timedelta(minutes=1)) == ("it", Outcome.MINTED)
    with pytest.raises(Unavailable, match="in time"):
        await provider.ask(asyncio.Event().wait, fine, timedelta(milliseconds=1))
    assert counted.outcomes == [Outcome.MINTED, Outcome.UNAVAILABLE]


async def test_an_attempt_that_is_stopped_counts_as_failed(asked, counted):
    task = asyncio.create_task(asked.ask(asyncio.Event().wait, fine))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert counted.outcomes == [Outcome.FAILED]
    assert asked.backoff.wait is None
