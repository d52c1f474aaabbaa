"""Envoy asks each edge whether it is ready, and says whether any is; nginx asks nobody."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.components import ENVOY
from tests.http import request
from tests.integration.api_gateway.conftest import new_ports
from tests.proxies.front import PREFIX, Front
from tests.waiting import eventually

pytestmark = pytest.mark.parametrize(
    "kind", [pytest.param("envoy", marks=pytest.mark.component(ENVOY))], indirect=True
)


def health_of(front: Front) -> int:
    return request(f"http://127.0.0.1:{front.ports.health}/healthz").status


def unhealthy(front: Front) -> int:
    """Return how many edges Envoy takes for not ready."""
    clusters = request(f"http://127.0.0.1:{front.ports.admin}/clusters").body.decode()
    return clusters.count("/failed_active_hc")


def test_an_edge_that_is_not_ready_is_left_alone(recording_front: Front, recorded) -> None:
    idle, busy = recorded
    idle.is_ready = False
    eventually(lambda: unhealthy(recording_front) == 1)
    idle.asked.clear()
    for _ in range(20):
        assert recording_front.ask(f"{PREFIX}/shares").status == 200
    assert (len(idle.asked), len(busy.asked)) == (0, 20)
    assert health_of(recording_front) == 200


def test_when_none_is_ready_they_are_asked_nevertheless(recording_front: Front, recorded) -> None:
    for edge in recorded:
        edge.is_ready = False
    eventually(lambda: unhealthy(recording_front) == 2)
    assert health_of(recording_front) == 503
    # What they can still do they do, and what they cannot they say themselves.
    assert recording_front.ask(f"{PREFIX}/shares").status == 200


def test_a_flood_of_connections_leaves_its_health_to_be_asked_for(
    start, recorded, authority, tmp_path
) -> None:
    changes = {"max_active_downstream_connections: 10000": "max_active_downstream_connections: 3"}
    addresses = [edge.address for edge in recorded]
    with (
        start(tmp_path / "front", new_ports(), addresses, authority, changes=changes) as front,
        ExitStack() as stack,
    ):
        with pytest.raises(OSError):  # noqa: PT011, PT012 -- which one is a matter of how far it has come
            for _ in range(10):
                idle = front.connect()
                stack.callback(idle.close)
                idle.connect()
        assert [health_of(front) for _ in range(5)] == [200] * 5


def test_an_envoy_that_is_being_drained_says_so_and_serves_on(recording_front: Front, recorded) -> None:
    admin = f"http://127.0.0.1:{recording_front.ports.admin}"
    assert request(f"{admin}/healthcheck/fail", method="POST").status == 200
    try:
        assert health_of(recording_front) == 503
        answer = recording_front.ask(f"{PREFIX}/shares")
        assert (answer.status, answer.headers["connection"]) == (200, "close")
    finally:
        request(f"{admin}/healthcheck/ok", method="POST")
