"""What views show at present, and refreshes that are asked for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.job import JobState
from gateway.domain.manifest import manifest_key
from gateway.domain.name import TableName
from gateway.domain.view_job import view_job_key
from gateway.errors import Unavailable
from gateway.services.catalog.showings import (
    LAST_RESORT,
    MOST_AHEAD,
    PATIENCE,
    REMEMBERED,
    VIEW_FAILED,
    VIEW_PENDING,
    Showings,
)
from tests.fakes.jobs import FakeJobs
from tests.fakes.state_store import FakeStateStore
from tests.showings import NOON, keep, make_showing, make_view, manifest_of, renamed
from tests.unit.services.catalog.calls import FakeClock

SHOWING = make_showing()
KEY = view_job_key(SHOWING)


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock(NOON)
        self.state = FakeStateStore(clock=self.clock)
        self.jobs = FakeJobs(self.clock)
        self.showings = Showings(self.state, self.jobs, self.clock)

    def pass_time(self, span: timedelta) -> None:
        self.clock.now += span

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_what_nobody_has_defined_for_a_while_is_not_shown_and_so_made_anew(bench):
    keep(bench.state, replace(manifest_of(SHOWING), hidden_from=NOON + timedelta(minutes=1)))

    assert await bench.showings.find(SHOWING) is not None
    bench.pass_time(timedelta(minutes=1))
    assert await bench.showings.find(SHOWING) is None


async def test_what_was_made_is_found_and_not_looked_for_again_at_once(bench):
    keep(bench.state, manifest_of(SHOWING))

    first = await bench.showings.find(SHOWING)
    again = await bench.showings.find(SHOWING)

    assert first == again
    assert first is not None
    assert first.location.text.endswith("/first")
    assert bench.state.calls == [("get", manifest_key(SHOWING.fingerprint))]


async def test_another_directory_is_found_once_the_first_is_not_remembered_any_more(bench):
    keep(bench.state, manifest_of(SHOWING))
    await bench.showings.find(SHOWING)
    keep(bench.state, manifest_of(SHOWING, "second"))

    bench.pass_time(REMEMBERED)
    found = await bench.showings.find(SHOWING)

    assert found is not None
    assert found.location.text.endswith("/second")


async def test_all_who_ask_at_once_wait_for_one_look(bench):
    keep(bench.state, manifest_of(SHOWING))
    bench.state.delay(0.01)

    found = await asyncio.gather(*(bench.showings.find(SHOWING) for _ in range(20)))

    assert len(set(found)) == 1
    assert len(bench.state.calls) == 1


async def test_who_leaves_does_not_take_the_look_of_others_along(bench):
    keep(bench.state, manifest_of(SHOWING))
    bench.state.delay(0.01)
    leaving = asyncio.create_task(bench.showings.find(SHOWING))
    staying = asyncio.create_task(bench.showings.find(SHOWING))
    await asyncio.sleep(0)

    leaving.cancel()

    assert await staying is not None


async def test_a_state_that_does_not_answer_leaves_what_was_found_for_a_while(bench):
    keep(bench.state, manifest_of(SHOWING))
    await bench.showings.find(SHOWING)

    bench.pass_time(LAST_RESORT - timedelta(seconds=1))
    bench.state.fail_next("get")
    assert await bench.showings.find(SHOWING) is not None

    bench.pass_time(timedelta(seconds=2))
    bench.state.fail_next("get")
    with pytest.raises(Unavailable):
        await bench.showings.find(SHOWING)


async def test_a_manifest_that_cannot_be_read_is_as_none(bench):
    bench.state.entries[manifest_key(SHOWING.fingerprint)] = b"{", NOON

    assert await bench.showings.find(SHOWING) is None


async def test_what_was_never_made_is_asked_for_once_and_told_with_the_time_to_wait(bench):
    for _ in range(3):
        with pytest.raises(Unavailable) as raised:
            await bench.showings.find_or_tell(SHOWING)
        assert raised.value.error_code == VIEW_PENDING
        assert raised.value.retry_after is not None

    assert [key for key, _, _ in bench.jobs.asked] == [KEY]
    assert bench.jobs.asked[0][1] == {"share": "s", "schema": "d", "view": "view", "recipient": ""}


async def test_a_refresh_that_failed_is_told_and_tried_again_after_a_while(bench):
    with pytest.raises(Unavailable):
        await bench.showings.find_or_tell(SHOWING)
    bench.jobs.end(KEY, JobState.FAILED, "no such column: secret")

    with pytest.raises(Unavailable, match="could not be prepared") as raised:
        await bench.showings.find_or_tell(SHOWING)
    assert raised.value.error_code == VIEW_FAILED
    assert "secret" not in raised.value.message
    assert len(bench.jobs.asked) == 1

    bench.pass_time(PATIENCE)
    with pytest.raises(Unavailable):
        await bench.showings.find_or_tell(SHOWING)
    assert len(bench.jobs.asked) == 2


async def test_what_is_too_old_is_shown_and_asked_for_beside(bench):
    keep(bench.state, manifest_of(SHOWING, at=NOON - timedelta(hours=2)))

    assert await bench.showings.find_or_tell(SHOWING)
    await bench.showings.find_or_tell(SHOWING)
    await bench.settle()

    assert [key for key, _, _ in bench.jobs.asked] == [KEY]


async def test_what_is_fresh_or_may_be_of_any_age_is_not_asked_for(bench):
    ageless = renamed(make_showing(make_view(max_staleness=None)), TableName("s", "d", "ageless"))
    keep(bench.state, manifest_of(SHOWING, at=NOON - timedelta(minutes=59)))
    keep(bench.state, manifest_of(ageless, at=NOON - timedelta(days=900)))

    await bench.showings.find_or_tell(SHOWING)
    await bench.showings.find_or_tell(ageless)
    await bench.settle()

    assert bench.jobs.asked == []


@pytest.mark.parametrize("staleness", [None, timedelta(hours=1)])
async def test_what_is_of_the_future_is_not_fresh_beyond_what_clocks_differ(bench, staleness):
    showing = make_showing(make_view(max_staleness=staleness))
    for ahead, is_fresh in ((MOST_AHEAD, True), (MOST_AHEAD + timedelta(seconds=1), False)):
        found = manifest_of(showing, at=NOON + ahead).materialisation(showing.view.root)

        assert bench.showings.is_fresh(showing, found) is is_fresh


async def test_a_queue_that_does_not_answer_keeps_nobody_from_what_is_there(bench):
    keep(bench.state, manifest_of(SHOWING, at=NOON - timedelta(hours=2)))
    bench.jobs.error = Unavailable("no state")

    assert await bench.showings.find_or_tell(SHOWING)
    await bench.settle()
