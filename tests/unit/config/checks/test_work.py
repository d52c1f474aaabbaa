from __future__ import annotations

import pytest

from tests.cases import each_case

TABLE = "shares: [{name: s, schemas: [{name: d, tables: [{name: t, location: %s%s}]}]}]\n"
VIEW = (
    "shares: [{name: s, schemas: [{name: d, tables: [{name: t, location: /data/t}], "
    "views: [{name: v, from: s.d.t, location: /data/v}]}]}]\n"
)
ENTRY = "{name: %s, prefix: '%s', vendor: s3}"
LAKE, STATE = ENTRY % ("lake", "s3://lake"), ENTRY % ("state", "s3://state")


@pytest.fixture
def problem_of(faults_of):
    def find(text: str, path: str) -> str:
        fault = faults_of(text).get(path)
        return fault.message if fault else ""

    return find


@pytest.mark.parametrize("time", ["1s", "4s", "61m"])
def test_lease_is_from_seconds_to_an_hour(problem_of, time):
    assert "from 5s to 1h" in problem_of(f"pipeline: {{leaseTime: {time}}}", "pipeline.leaseTime")


@pytest.mark.parametrize("text", ["{jobTimeout: 59s}", "{leaseTime: 10m, jobTimeout: 5m}"])
def test_job_may_take_longer_than_its_lease(problem_of, text):
    assert "no shorter than leaseTime" in problem_of(f"pipeline: {text}", "pipeline.jobTimeout")


def test_times_that_make_sense_are_fine(faults_of):
    assert not faults_of("pipeline: {leaseTime: 5s, jobTimeout: 1h}")


@pytest.mark.parametrize("key", ["state: {location", "usage: {landing"])
def test_place_is_a_location(faults_of, key):
    assert faults_of(f"{key}: 'ftp://a/b'}}")


def test_state_on_a_store_needs_an_entry(problem_of):
    text = "storages: []\nstate: {location: 's3://state/a'}"
    assert "add a storage for it alone" in problem_of(text, "state.location")
    assert "add a storage for it alone" in problem_of("state: {location: 's3://state/a'}", "state.location")


@pytest.mark.parametrize(
    ("key", "path"), [("state: {location", "state.location"), ("usage: {landing", "usage.landing")]
)
def test_entry_of_what_front_services_hold_opens_no_table(problem_of, key, path):
    table = TABLE % ("'s3://lake/t'", "")
    shared = f"storages: [{LAKE}]\n{key}: 's3://lake/own'}}\n{table}"
    own = f"storages: [{LAKE}, {STATE}]\n{key}: 's3://state/own'}}\n{table}"
    longer = f"storages: [{LAKE}, {ENTRY % ('own', 's3://lake/own')}]\n{key}: 's3://lake/own/a'}}\n{table}"

    assert "storages[0] (lake) opens s.d.t too" in problem_of(shared, path)
    assert problem_of(own, path) == ""
    assert problem_of(longer, path) == ""


def test_entry_that_opens_an_auxiliary_location_is_refused_too(problem_of):
    table = TABLE % ("'s3://lake/t'", ", auxiliaryLocations: ['s3://state/x']")
    text = f"storages: [{LAKE}, {STATE}]\nstate: {{location: 's3://state/own'}}\n{table}"

    assert "(state) opens s.d.t too" in problem_of(text, "state.location")


@each_case("location", ["/data", "/data/t", "/data/t/deep", "file:///data"])
@each_case(("key", "path"), [("state: {location", "state.location"), ("usage: {landing", "usage.landing")])
def test_place_lies_apart_from_what_is_shared(problem_of, key, path, location):
    assert "apart from what is shared" in problem_of(
        f"{key}: '{location}'}}\n{TABLE % ('/data/t', '')}", path
    )


def test_directory_needs_no_entry(faults_of):
    assert not faults_of(
        f"state: {{location: /srv/state}}\nusage: {{landing: /srv/audit}}\n{TABLE % ('/data/t', '')}"
    )


@pytest.mark.parametrize("shares", [VIEW, TABLE % ("/data/t", ", indexEvery: 1h")], ids=["view", "index"])
def test_processes_that_run_apart_name_where_their_state_is(problem_of, shares):
    split = f"services: {{run: [catalog], listen: '127.0.0.1:9400'}}\n{shares}"

    assert "run apart" in problem_of(split, "state.location")
    assert problem_of(f"{split}state: {{location: /srv/state}}", "state.location") == ""
    assert problem_of(shares, "state.location") == ""


def test_processes_that_share_nothing_of_the_kind_need_no_state(problem_of):
    text = f"services: {{run: [catalog], listen: '127.0.0.1:9400'}}\n{TABLE % ('/data/t', '')}"
    assert problem_of(text, "state.location") == ""
