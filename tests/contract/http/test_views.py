"""Views over HTTP, with a worker that writes without Spark."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gateway.commands.bearer import hash_of
from tests.builders import TableBuilder
from tests.components import ALL_IN_ONE
from tests.contract.http import plugin
from tests.contract.http.client import Answer, fetch
from tests.deployments import Deployment, Settings, all_in_one
from tests.view_worker import FIELDS, ViewWorker
from tests.waiting import eventually

ASYNC = "asyncquery=true"
REGIONS = {"ann": "emea", "cleo": "apac"}


@dataclass
class World:
    deployment: Deployment
    settings: Settings
    scratch: Path

    def worker(self, number: int = 0) -> ViewWorker:
        """Return a worker that shows rows of the recipient's region, told apart by a number."""

        def show(parameters: Mapping[str, str | None]) -> list[dict[str, Any]]:
            region = parameters.get("property_0") or "all"
            return [{"number": number + i, "region": region} for i in range(4)]

        return ViewWorker(self.settings, self.scratch, show)

    def path(self, view: str) -> str:
        return f"/shares/sales/schemas/eu/tables/{view}"

    def post(self, path: str, body: Any = None, *, who: str = "ann", capabilities: str = "") -> Answer:
        headers = {"Authorization": f"Bearer token-of-{who}", "Content-Type": "application/json"}
        if capabilities:
            headers["delta-sharing-capabilities"] = capabilities
        url = self.deployment.base_url + path
        return fetch("POST", url, headers, json.dumps(body or {}).encode())

    def get(self, path: str, who: str = "ann") -> Answer:
        headers = {"Authorization": f"Bearer token-of-{who}"}
        return fetch("GET", self.deployment.base_url + path, headers)

    def query(self, view: str, body: Any = None, **how: Any) -> Answer:
        return self.post(f"{self.path(view)}/query", body, **how)

    def poll(self, view: str, query_id: str, body: Any = None, **how: Any) -> Answer:
        return self.post(f"{self.path(view)}/queries/{query_id}", body, **how)

    def begin(self, view: str, body: Any = None, **how: Any) -> str:
        """Begin a query that has to wait, and return its id."""
        answer = self.query(view, body, capabilities=ASYNC, **how)
        (line,) = answer.streamed()
        assert line["queryStatus"]["status"] == "pending"
        return str(line["queryStatus"]["queryId"])

    def listed(self, view: str, who: str = "ann") -> dict[str, Any]:
        items = self.get("/shares/sales/schemas/eu/tables", who).json()["items"]
        return next(item for item in items if item["name"] == view)

    def await_shown(self, view: str, who: str = "ann") -> Answer:
        """Return the answer once replicas look at the state again."""

        def shown() -> Answer | None:
            answer = self.query(view, who=who)
            return answer if answer.status == 200 else None

        return eventually(shown, f"{view} is shown")


VIEWS = ("plain", "mine", "dirs", "fresh", "stale", "broken", "failing", "paged", "keyed", "other")


def _settings(directory: Path) -> Settings:
    lake = directory / "lake"
    TableBuilder(lake / "orders", FIELDS).append([{"number": 1, "region": "emea"}])
    views = [_view(lake, name) for name in VIEWS]
    table = {"name": "orders", "location": str(lake / "orders")}
    recipients = [
        {
            "name": name,
            "tokens": [{"hash": hash_of(f"token-of-{name}")}],
            "shares": ["sales"],
            "properties": {"region": region},
        }
        for name, region in REGIONS.items()
    ]
    return {
        "version": 1,
        "shares": [{"name": "sales", "schemas": [{"name": "eu", "tables": [table], "views": views}]}],
        "storages": [{"name": "lake", "prefix": str(lake), "vendor": plugin.NAME}],
        "recipients": recipients,
        "limits": {"rate": {"requestsPerSecond": 100_000, "burst": 100_000}},
        "state": {"location": str(directory / "state")},
    }


def _view(lake: Path, name: str) -> dict[str, Any]:
    view: dict[str, Any] = {
        "name": name,
        "location": str(lake / "views" / name),
        "accessModes": ["url", "dir"],
    }
    if name in {"mine", "dirs"}:
        view["sql"] = "select * from sales.eu.orders where region = current_recipient('region')"
    else:
        view |= {"from": "sales.eu.orders", "filter": "number > 0"}
    return view | ({"maxStaleness": "1s"} if name == "stale" else {"maxStaleness": "1h"})


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    start: Callable[..., Any] = request.param
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        settings = _settings(directory)
        with plugin.installed(directory / "installed"), start(directory / "run", settings) as deployment:
            yield World(deployment, settings, directory / "scratch")


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    """Read all files that an answer has URLs of."""
    urls = [line["file"]["url"] for line in answer.streamed() if "file" in line]
    frames = [pl.read_parquet(io.BytesIO(fetch("GET", url, {}).body)) for url in urls]
    return pl.concat(frames).sort("number").to_dicts()


def test_a_view_that_was_never_made_is_listed_without_a_place_and_without_dir(world):
    listed = world.listed("other")

    assert "location" not in listed
    assert listed["accessModes"] == ["url"]


def test_a_view_that_was_never_made_is_503_with_the_time_to_wait(world):
    answer = world.query("plain")

    assert answer.error() == (503, "VIEW_NOT_READY")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "orders" not in answer.json()["message"]


def test_a_view_is_read_as_any_table_once_it_was_made(world):
    world.query("plain")
    assert world.worker().run() >= 1

    answer = world.await_shown("plain")

    assert [row["number"] for row in rows_of(answer)] == [0, 1, 2, 3]
    listed = world.listed("plain")
    assert listed["accessModes"] == ["url", "dir"]
    assert "/views/plain/" in listed["location"]
    assert world.get(f"{world.path('plain')}/version").headers["Delta-Table-Version"] == "0"
    assert world.get(f"{world.path('plain')}/metadata").status == 200


def test_a_view_has_no_history_to_travel_in(world):
    world.query("plain")
    world.worker().run()
    world.await_shown("plain")

    assert world.query("plain", {"version": 0}).status == 400
    assert world.get(f"{world.path('plain')}/changes?startingVersion=0").status == 400


@pytest.mark.smoke
def test_each_recipient_has_rows_and_a_directory_of_its_own_by_url_and_by_dir(world):
    for who in REGIONS:
        world.query("mine", who=who)
    world.worker().run()

    rows = {who: {row["region"] for row in rows_of(world.await_shown("mine", who))} for who in REGIONS}
    places = {who: world.listed("mine", who)["location"] for who in REGIONS}
    opened = {
        who: world.post(f"{world.path('mine')}/temporary-table-credentials", who=who).json()["credentials"]
        for who in REGIONS
    }

    assert rows == {"ann": {"emea"}, "cleo": {"apac"}}
    assert places["ann"] != places["cleo"]
    assert {who: credential["location"] for who, credential in opened.items()} == places
    stolen = world.post(
        f"{world.path('mine')}/temporary-table-credentials", {"location": places["ann"]}, who="cleo"
    )
    assert stolen.status == 400
    assert places["ann"] not in stolen.body.decode()


@pytest.mark.smoke
def test_a_client_that_can_wait_is_given_a_query_and_then_its_result(world):
    first = world.query("fresh", {"limitHint": 3}, capabilities=ASYNC)
    (line,) = first.streamed()
    query_id = line["queryStatus"]["queryId"]

    assert line == {"queryStatus": {"queryId": query_id, "status": "pending"}}
    assert first.headers["Delta-Table-Version"] == "0"
    assert "asyncquery=true" in first.headers["delta-sharing-capabilities"]
    assert first.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"

    again = world.poll("fresh", query_id, {"queryId": query_id}, capabilities=ASYNC)
    assert again.streamed() == [line]
    assert again.headers["Delta-Table-Version"] == "0"

    world.worker().run()
    world.await_shown("fresh")
    done = world.poll("fresh", query_id, capabilities=ASYNC)
    same = world.query("fresh", {"limitHint": 3})
    assert [set(line) for line in done.streamed()] == [set(line) for line in same.streamed()]
    assert rows_of(done) == rows_of(same)
    assert "asyncquery" not in done.headers["delta-sharing-capabilities"]


def test_a_fresh_view_and_a_plain_table_are_answered_at_once_to_a_client_that_could_wait(world):
    world.query("fresh")
    world.worker().run()
    world.await_shown("fresh")

    assert rows_of(world.query("fresh", capabilities=ASYNC))
    assert rows_of(world.query("orders", capabilities=ASYNC))


def test_pages_of_a_result_go_on_where_it_was_asked_for(world):
    query_id = world.begin("paged", {"maxFiles": 1})
    world.worker().run()
    world.await_shown("paged")

    first = world.poll("paged", query_id)
    token = first.streamed()[-1]["endStreamAction"]["nextPageToken"]
    second = world.poll("paged", query_id, {"pageToken": token, "maxFiles": 5})

    assert len(rows_of(first)) == len(rows_of(second)) == 2
    assert rows_of(first) != rows_of(second)
    assert "nextPageToken" not in second.streamed()[-1].get("endStreamAction", {})


def test_a_stale_view_shows_its_last_good_state_and_is_refreshed(world):
    world.query("stale")
    world.worker(100).run()
    world.await_shown("stale")
    # Once the view is stale, a client that can wait is told to.
    eventually(lambda: "queryStatus" in world.query("stale", capabilities=ASYNC).streamed()[0])

    assert rows_of(world.query("stale"))[0]["number"] == 100
    query_id = world.begin("stale")
    assert world.worker(200).run() == 1
    eventually(lambda: "file" in world.poll("stale", query_id).streamed()[-1])

    assert rows_of(world.query("stale"))[0]["number"] == 200


def test_a_query_whose_refresh_failed_is_an_error_that_says_so_and_no_more(world):
    query_id = world.begin("failing")
    world.worker().fail("column secret_name of s3://lake/orders does not exist")

    answer = world.poll("failing", query_id)
    body = answer.json()

    assert answer.status == 400
    assert body["errorCode"] == "QUERY_FAILED"
    assert body["queryStatus"] == {"queryId": query_id, "status": "failed", "message": body["message"]}
    assert "sales.eu.failing" in body["message"]
    assert "secret_name" not in answer.body.decode()
    plain = world.query("failing")
    assert plain.error() == (503, "VIEW_FAILED")
    assert "Retry-After" in plain.headers


def test_one_key_is_one_query_and_refused_for_another(world):
    first = world.begin("keyed", {"idempotencyKey": "k1", "limitHint": 1})

    assert world.begin("keyed", {"idempotency_key": "k1", "limitHint": 1}) == first
    assert world.begin("keyed", {"idempotencyKey": "k2", "limitHint": 1}) != first
    assert world.begin("keyed", {"idempotencyKey": "k1", "limitHint": 1}, who="cleo") != first
    refused = world.query("keyed", {"idempotencyKey": "k1", "limitHint": 2}, capabilities=ASYNC)
    assert refused.error() == (400, "INVALID_PARAMETER_VALUE")


def test_a_query_of_another_recipient_of_another_table_or_of_nobody_is_not_there(world):
    query_id = world.begin("broken")
    others = [
        world.poll("broken", query_id, who="cleo"),
        world.poll("keyed", query_id),
        world.poll("orders", query_id),
        world.poll("broken", "A" * 32),
        world.poll("broken", "no-such-query"),
        world.poll("broken", "%2e%2e%2fjobs"),
    ]

    assert {answer.error() for answer in others} == {(404, "RESOURCE_DOES_NOT_EXIST")}
    assert len({answer.json()["message"] for answer in others[:5]}) == 1


def test_a_body_that_names_another_query_is_refused(world):
    query_id = world.begin("broken")

    assert world.poll("broken", query_id, {"queryId": "another"}).status == 400


@pytest.mark.slow
@pytest.mark.component(ALL_IN_ONE)
def test_a_query_survives_a_restart_of_the_gateway(tmp_path):
    settings = _settings(tmp_path)
    with plugin.installed(tmp_path / "installed"):
        with all_in_one(tmp_path / "before", settings) as deployment:
            query_id = World(deployment, settings, tmp_path / "scratch").begin("plain", {"limitHint": 2})
        World(deployment, settings, tmp_path / "scratch").worker().run()
        with all_in_one(tmp_path / "after", settings) as deployment:
            done = World(deployment, settings, tmp_path / "scratch").poll("plain", query_id)

    assert "file" in done.streamed()[-1]
