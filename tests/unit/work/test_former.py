"""What definitions of views have left that no configuration has any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.manifest import manifest_key, read_manifest
from gateway.domain.name import TableName
from gateway.work.former import NOTICE, FormerShowings
from tests.fakes.state_store import FakeStateStore
from tests.showings import NAME, NOON, keep, make_showing, make_view, manifest_of, renamed
from tests.unit.services.catalog.calls import FakeClock

KEPT_FOR = timedelta(hours=2)
EARLIER = NOON - timedelta(days=1)
SHOWING = make_showing()
FORMER = make_showing(replace(make_view(), query="SELECT 0"))


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock(NOON)
        self.state = FakeStateStore(clock=self.clock)
        self.former = FormerShowings(self.state, self.clock)
        keep(self.state, manifest_of(SHOWING, at=EARLIER))
        keep(self.state, manifest_of(FORMER, at=EARLIER))

    async def going(self, *current: str):
        return await self.former.going(NAME, current or {SHOWING.fingerprint}, KEPT_FOR)

    def hidden_from(self, showing):
        content, _ = self.state.entries[manifest_key(showing.fingerprint)]
        return read_manifest(content).hidden_from


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_former_showing_is_hidden_after_a_notice_and_named_when_nobody_can_read_it(bench):
    assert await bench.going() == []
    assert bench.hidden_from(FORMER) == NOON + NOTICE

    bench.clock.now = NOON + NOTICE + KEPT_FOR - timedelta(seconds=1)
    assert await bench.going() == []
    bench.clock.now += timedelta(seconds=1)
    assert await bench.going() == [FORMER.fingerprint]


async def test_what_is_shown_is_left_as_it_is(bench):
    await bench.going(SHOWING.fingerprint, FORMER.fingerprint)

    assert bench.hidden_from(SHOWING) is None
    assert bench.hidden_from(FORMER) is None


async def test_showings_of_other_views_are_left_as_they_are(bench):
    other = renamed(FORMER, TableName("s", "d", "other"))
    keep(bench.state, manifest_of(other, at=EARLIER))

    await bench.going()

    assert bench.hidden_from(other) is None


async def test_the_name_of_a_view_may_have_changed_in_case(bench):
    spelled = renamed(FORMER, TableName("S", "D", "View"))
    keep(bench.state, manifest_of(spelled, at=EARLIER))

    await bench.going()

    assert bench.hidden_from(spelled) == NOON + NOTICE


@pytest.mark.parametrize("content", [b"{", manifest_of(SHOWING).encode()], ids=["damaged", "another's"])
async def test_nothing_is_done_to_what_is_not_the_manifest_of_its_key(bench, content):
    key = manifest_key(FORMER.fingerprint)
    bench.state.entries[key] = content, NOON

    assert await bench.going() == []
    assert bench.state.entries[key][0] == content


async def test_a_manifest_that_somebody_replaces_meanwhile_is_theirs(bench):
    fresh = manifest_of(FORMER, "fresh")

    async def another(method: str, key: str) -> None:
        if method == "replace":
            keep(bench.state, fresh)

    bench.state.before = another
    await bench.going()

    assert bench.hidden_from(FORMER) is None


async def test_what_was_made_since_the_configuration_was_taken_up_may_be_of_a_newer_one(bench):
    keep(bench.state, manifest_of(FORMER, at=NOON))

    await bench.going()

    assert bench.hidden_from(FORMER) is None


@pytest.mark.parametrize(
    ("hidden_from", "current", "is_forgotten"),
    [(NOON, (), True), (None, (), False), (NOON, (FORMER.fingerprint,), False)],
    ids=["hidden", "made anew", "defined again"],
)
async def test_only_what_is_still_hidden_from_everybody_is_forgotten(
    bench, hidden_from, current, is_forgotten
):
    keep(bench.state, replace(manifest_of(FORMER), hidden_from=hidden_from))

    await bench.former.forget(FORMER.fingerprint, current)

    assert (manifest_key(FORMER.fingerprint) not in bench.state.entries) is is_forgotten
