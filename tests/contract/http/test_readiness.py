"""A gateway that says it is ready serves requests: a load balancer sends some from the first 200 on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.bootstrap.readiness import CheckTimes
from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway
from tests.contract.http.processes import Lake, gateway_in
from tests.deployments import Deployment, Settings
from tests.http import Answer, request
from tests.waiting import START_SECONDS, eventually


@dataclass(frozen=True, kw_only=True)
class World:
    gateway: Gateway
    deployment: Deployment
    launched_at: float


@pytest.fixture
def world(request: pytest.FixtureRequest, lake: Lake) -> Iterator[World]:
    launch: Callable[..., AbstractContextManager[Deployment]] = request.param
    launched_at = time.monotonic()
    deployments: list[Deployment] = []

    @contextmanager
    def start(directory: Path, settings: Settings) -> Iterator[Deployment]:
        with launch(directory, settings, wait=False) as deployment:
            deployments.append(deployment)
            yield deployment

    with gateway_in(start, lake) as gateway:
        yield World(gateway=gateway, deployment=deployments[0], launched_at=launched_at)


@pytest.mark.smoke
def test_first_200_of_readiness_means_that_a_query_and_a_credential_request_succeed(world: World) -> None:
    edge, client = world.deployment.edge, Client(world.gateway)

    def is_ready() -> Answer | None:
        assert edge.process.poll() is None, edge.log()
        try:
            answer = request(f"{edge.metrics_url}/readyz")
        except ConnectionError:
            return None
        return answer if answer.status == 200 else None

    answer = eventually(is_ready, edge.log, seconds=START_SECONDS, pause=0.01)
    query = client.query(world.gateway.plain)
    credential = client.post(f"{world.gateway.dir_only.path}/temporary-table-credentials")

    absent = {name for name, state in answer.json["services"].items() if state != "ok"}
    if absent:
        # The machine is so slow that other services start long after the edge.
        assert time.monotonic() - world.launched_at > CheckTimes().start_up.total_seconds()
    assert query.status == 200 or absent & {"snapshot", "presign"}, query.body
    assert credential.status == 200 or absent == {"vending"}, credential.body
