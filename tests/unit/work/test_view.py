"""Refreshes of views: what they are told, and what is published of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.job import Job, JobState
from gateway.domain.location import parse_location
from gateway.domain.manifest import Retired, decode_manifest, manifest_key
from gateway.domain.name import TableName
from gateway.domain.view import Showing
from gateway.domain.view_job import view_job_key, view_job_parameters
from gateway.errors import Internal, InvalidArgument, NotFound
from gateway.work.craft import Plan
from gateway.work.former import NOTICE
from gateway.work.view import MARGIN, Lives, ViewCraft
from tests.cases import each_case
from tests.fakes.state_store import FakeStateStore
from tests.showings import NAME, NOON, keep, make_showing, make_view, manifest_of
from tests.unit.services.catalog.calls import FakeClock
from tests.view_worker import NoStorages

URLS = timedelta(hours=1)
PERSONAL = make_view("region", max_staleness=None)


class Shown:
    def __init__(self, *showings: Showing) -> None:
        self.showings = list(showings)

    def find(self, name: TableName, recipient: str) -> Showing | None:
        return next((one for one in self.of_view(name) if one.recipient == recipient), None)

    def of_view(self, name: TableName) -> Iterator[Showing]:
        return (one for one in self.showings if one.name.key == name.key)

    def all(self) -> Iterator[Showing]:
        return iter(self.showings)


class Bench:
    def __init__(self, *showings: Showing) -> None:
        self.clock = FakeClock(NOON)
        self.state = FakeStateStore(clock=self.clock)
        self.views = Shown(*showings)
        lives = Lives(urls=URLS, runs=timedelta(hours=6))
        self.craft = ViewCraft(
            views=self.views, state=self.state, storages=NoStorages(), lives=lives, clock=self.clock
        )

    async def plan(self, job: Job) -> Plan:
        """Return the plan of a job that there is something to do for."""
        plan = await self.craft.plan(job)
        assert plan is not None
        return plan

    def manifest(self, showing: Showing):
        return decode_manifest(self.state.entries[manifest_key(showing.fingerprint)][0], showing)


def job_of(showing: Showing, started_at=NOON) -> Job:
    return Job(
        key=view_job_key(showing),
        sequence=1,
        state=JobState.RUNNING,
        parameters=view_job_parameters(showing),
        requested_at=NOON,
        started_at=started_at,
    )


def result_of(plan, name=None, **others):
    sources = {"s.d.t": {"version": 9, "id": "t-id"}}
    return {"name": name or plan.body["fresh_name"], "version": 0, "sources": sources, **others}


SHOWING = make_showing()
ANN = replace(make_showing(PERSONAL, "ann"), values=("emea",))


async def test_the_first_plan_has_all_that_a_run_needs():
    bench = Bench(ANN)

    plan = await bench.plan(job_of(ANN))

    body = dict(plan.body)
    assert body.pop("fresh_name").startswith("20260701T120000-")
    assert body == {
        "query": "SELECT 1",
        "sources": [{"name": "s.d.t", "url": "s3a://lake/t", "allowed": ["s3a://lake/t"]}],
        "parameters": {"property_0": "emea"},
        "appendable": True,
        "timed": False,
        "root_url": f"s3a://lake/views/view/{ANN.fingerprint}",
        "current": None,
        "app_id": ANN.fingerprint,
        "delete": [],
        "keep": [],
        "former": [],
        "orphans_before_ms": int((NOON - timedelta(hours=6) - MARGIN - URLS - MARGIN).timestamp() * 1000),
    }
    assert [location.text for location in plan.locations] == [
        "s3://lake/t",
        f"s3://lake/views/view/{ANN.fingerprint}",
    ]
    assert "emea" not in repr(plan)
    assert bench.state.entries == {}


async def test_a_plan_names_the_other_places_of_a_source_and_a_view_with_others_is_another():
    view = make_view()
    (source,) = view.sources
    elsewhere = replace(source, auxiliary_locations=(parse_location("s3://other/base"),))
    showing = make_showing(replace(view, sources=(elsewhere,)))

    plan = await Bench(showing).plan(job_of(showing))

    assert plan.body["sources"][0]["allowed"] == ["s3a://lake/t", "s3a://other/base"]
    assert [location.text for location in plan.reads] == ["s3://lake/t", "s3://other/base"]
    assert showing.fingerprint != SHOWING.fingerprint


async def test_a_run_is_told_that_a_query_asks_for_the_time():
    showing = make_showing(replace(make_view(), uses_clock=True))

    plan = await Bench(showing).plan(job_of(showing))

    assert plan.body["timed"] is True
    assert showing.fingerprint == SHOWING.fingerprint


async def test_a_later_plan_goes_on_from_what_is_shown_and_deletes_what_nobody_can_read_any_more():
    bench = Bench(SHOWING)
    long_ago, lately = NOON - URLS - MARGIN, NOON - URLS - MARGIN + timedelta(seconds=1)
    # Where no storage says how long credentials live, URLs do.
    retired = (Retired(name="old", at=long_ago), Retired(name="younger", at=lately))
    keep(bench.state, replace(manifest_of(SHOWING), retired=retired))

    plan = await bench.plan(job_of(SHOWING))

    assert plan.body["current"] == {
        "name": "first",
        "version": 3,
        "sources": {"s.d.t": {"version": 7, "id": "t-id"}},
    }
    assert plan.body["delete"] == ["old"]
    assert plan.body["keep"] == ["younger"]


async def test_without_knowing_what_was_shown_nothing_is_taken_for_an_orphan():
    bench = Bench(SHOWING)
    bench.state.entries[manifest_key(SHOWING.fingerprint)] = b"{", NOON

    plan = await bench.plan(job_of(SHOWING))

    assert plan.body["orphans_before_ms"] is None


async def test_what_was_made_is_shown_and_what_was_shown_is_kept_for_a_while():
    bench = Bench(SHOWING)
    keep(
        bench.state,
        replace(
            manifest_of(SHOWING, at=NOON - timedelta(days=1)),
            retired=(Retired(name="old", at=NOON - timedelta(days=2)),),
        ),
    )
    job = job_of(SHOWING)
    plan = await bench.plan(job)
    bench.clock.now += timedelta(minutes=5)

    await bench.craft.publish(job, plan, result_of(plan, deleted=["old", "never-told"]))

    manifest = bench.manifest(SHOWING)
    assert manifest.name == plan.body["fresh_name"]
    assert manifest.refreshed_at == NOON
    assert manifest.retired == (Retired(name="first", at=bench.clock.now),)
    assert manifest.sources["s.d.t"].version == 9


async def test_an_append_keeps_its_directory_and_retires_none():
    bench = Bench(SHOWING)
    keep(bench.state, manifest_of(SHOWING, at=NOON - timedelta(days=1)))
    job = job_of(SHOWING)
    plan = await bench.plan(job)

    await bench.craft.publish(job, plan, result_of(plan, "first", version=4))

    assert bench.manifest(SHOWING).name == "first"
    assert bench.manifest(SHOWING).retired == ()
    assert bench.manifest(SHOWING).refreshed_at == NOON


@pytest.mark.parametrize("changed", ["gone", "value", "query"])
async def test_what_was_made_for_what_the_configuration_meant_before_is_not_shown(changed):
    bench = Bench(ANN)
    job = job_of(ANN)
    plan = await bench.plan(job)
    views = {
        "gone": [],
        "value": [replace(ANN, values=("apac",))],
        "query": [replace(ANN, view=replace(PERSONAL, query="SELECT 2"))],
    }
    bench.views.showings = views[changed]

    await bench.craft.publish(job, plan, result_of(plan))

    assert bench.state.entries == {}
    assert await bench.craft.plan(job) is None


async def test_an_older_run_does_not_take_the_place_of_a_newer_one():
    bench = Bench(SHOWING)
    an_hour_ago = NOON - timedelta(hours=1)
    job = replace(job_of(SHOWING, started_at=an_hour_ago), requested_at=an_hour_ago)
    plan = await bench.plan(job)
    keep(bench.state, manifest_of(SHOWING, "newer", at=NOON))

    await bench.craft.publish(job, plan, result_of(plan))

    assert bench.manifest(SHOWING).name == "newer"


async def test_a_clock_that_was_ahead_does_not_keep_later_runs_from_being_shown():
    bench = Bench(SHOWING)
    keep(bench.state, manifest_of(SHOWING, "ahead", at=NOON + timedelta(days=1)))
    job = job_of(SHOWING)
    plan = await bench.plan(job)

    await bench.craft.publish(job, plan, result_of(plan))

    assert bench.manifest(SHOWING).name == plan.body["fresh_name"]
    assert bench.manifest(SHOWING).refreshed_at == NOON


async def test_what_a_worker_with_a_slow_clock_made_is_no_older_than_the_request():
    bench = Bench(SHOWING)
    job = job_of(SHOWING, started_at=NOON - timedelta(minutes=10))
    plan = await bench.plan(job)

    await bench.craft.publish(job, plan, result_of(plan))

    assert bench.manifest(SHOWING).refreshed_at == NOON


async def test_publishing_twice_is_publishing_once():
    bench = Bench(SHOWING)
    job = job_of(SHOWING)
    plan = await bench.plan(job)

    await bench.craft.publish(job, plan, result_of(plan))
    once = dict(bench.state.entries)
    await bench.craft.publish(job, plan, result_of(plan))

    assert bench.state.entries == once


async def test_a_manifest_that_changes_meanwhile_is_read_again():
    bench = Bench(SHOWING)
    keep(bench.state, manifest_of(SHOWING, at=NOON - timedelta(days=1)))
    job = job_of(SHOWING)
    plan = await bench.plan(job)

    async def another(method: str, key: str) -> None:
        if method == "replace" and sum(called == "replace" for called, _ in bench.state.calls) == 1:
            keep(bench.state, manifest_of(SHOWING, "between", at=NOON - timedelta(hours=1)))

    bench.state.before = another
    await bench.craft.publish(job, plan, result_of(plan))

    assert bench.manifest(SHOWING).name == plan.body["fresh_name"]
    assert [entry.name for entry in bench.manifest(SHOWING).retired] == ["between"]


@each_case(
    "result",
    [
        {},
        {"name": "other", "version": 0, "sources": {}},
        {"name": "../x", "version": 0, "sources": {}},
        {"name": None, "version": 0, "sources": {}},
        {"name": "first", "version": "x", "sources": {}},
        {"name": "first", "version": 0, "sources": []},
    ],
)
async def test_a_result_that_is_no_answer_to_the_plan_is_not_shown(result):
    bench = Bench(SHOWING)
    job = job_of(SHOWING)
    plan = await bench.plan(job)

    with pytest.raises(Internal):
        await bench.craft.publish(job, plan, result)
    assert bench.state.entries == {}


async def test_what_a_former_definition_showed_goes_once_nobody_can_read_it_and_is_forgotten_then():
    bench = Bench(SHOWING)
    former = make_showing(replace(SHOWING.view, query="SELECT 0"))
    keep(bench.state, manifest_of(former, at=NOON - timedelta(days=1)))
    job = job_of(SHOWING)

    assert (await bench.plan(job)).body["former"] == []
    bench.clock.now += NOTICE + URLS + MARGIN
    plan = await bench.plan(job)
    assert plan.body["former"] == [former.fingerprint]

    await bench.craft.publish(job, plan, result_of(plan, forgotten=[former.fingerprint, SHOWING.fingerprint]))
    assert list(bench.state.entries) == [manifest_key(SHOWING.fingerprint)]


async def test_a_definition_that_comes_back_in_time_is_shown_as_it_was():
    bench = Bench(SHOWING)
    keep(bench.state, replace(manifest_of(SHOWING), hidden_from=NOON + timedelta(minutes=1)))
    job = job_of(SHOWING)

    plan = await bench.plan(job)
    assert plan.body["current"]["name"] == "first"
    await bench.craft.publish(job, plan, result_of(plan, "first", version=3))

    assert bench.manifest(SHOWING) == manifest_of(SHOWING)


async def test_a_definition_that_comes_back_too_late_is_made_anew_and_what_it_had_is_retired():
    bench = Bench(SHOWING)
    keep(bench.state, replace(manifest_of(SHOWING, at=NOON - timedelta(days=1)), hidden_from=NOON))
    job = job_of(SHOWING)

    plan = await bench.plan(job)
    assert plan.body["current"] is None
    await bench.craft.publish(job, plan, result_of(plan))

    manifest = bench.manifest(SHOWING)
    assert (manifest.name, manifest.hidden_from) == (plan.body["fresh_name"], None)
    assert [entry.name for entry in manifest.retired] == ["first"]


def test_jobs_are_found_by_name_for_all_or_for_one():
    cleo = replace(make_showing(PERSONAL, "cleo"), values=("apac",))
    craft = Bench(ANN, cleo).craft

    assert len(craft.named("S.D.View")) == 2
    assert [wanted.parameters["recipient"] for wanted in craft.named(str(NAME), "cleo")] == ["cleo"]
    with pytest.raises(NotFound):
        craft.named("s.d.other")
    with pytest.raises(NotFound):
        craft.named(str(NAME), "bob")
    with pytest.raises(InvalidArgument):
        craft.named("view")


def test_what_is_to_be_refreshed_by_itself_is_scheduled_for_each_showing():
    often = replace(PERSONAL, refresh_every=timedelta(minutes=5))
    craft = Bench(replace(ANN, view=often), SHOWING).craft

    (scheduled,) = craft.scheduled()

    assert scheduled.every == timedelta(minutes=5)
    assert scheduled.wanted.parameters["recipient"] == "ann"
    assert "emea" not in repr(scheduled)
