"""The API gateways that are shipped, before edges that keep what they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.certificates import Authority, new_authority
from tests.components import ENVOY, NGINX
from tests.ports import free_port
from tests.proxies.front import PREFIX, Front, Ports, StartFront
from tests.proxies.front_envoy import envoy_front
from tests.proxies.front_nginx import nginx_front
from tests.proxies.recording_edge import RecordingEdge, recording_edge
from tests.waiting import eventually

FRONTS = {"envoy": envoy_front, "nginx": nginx_front}


@pytest.fixture(scope="package")
def authority(tmp_path_factory) -> Authority:
    return new_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(
    scope="package",
    params=[
        pytest.param("envoy", marks=pytest.mark.component(ENVOY)),
        pytest.param("nginx", marks=[pytest.mark.component(NGINX), pytest.mark.system]),
    ],
)
def kind(request) -> str:
    """Which API gateway it is."""
    name: str = request.param
    return name


@pytest.fixture(scope="package")
def start(kind) -> StartFront:
    return FRONTS[kind]


@pytest.fixture(scope="package")
def two_recording_edges() -> Iterator[list[RecordingEdge]]:
    with ExitStack() as stack:
        yield [stack.enter_context(recording_edge()) for _ in range(2)]


@pytest.fixture(scope="package")
def recording_front(start, two_recording_edges, authority, tmp_path_factory) -> Iterator[Front]:
    """The shipped configuration as it is, before the two."""
    addresses = [edge.address for edge in two_recording_edges]
    with start(tmp_path_factory.mktemp("front"), new_ports(), addresses, authority) as front:
        yield front


@pytest.fixture
def recorded(two_recording_edges: list[RecordingEdge], recording_front) -> list[RecordingEdge]:
    """The two, as they were before any test used them, and neither left alone for what it did then."""
    were_harmed = any(edge.fault or not edge.is_ready for edge in two_recording_edges)
    for edge in two_recording_edges:
        edge.reset()
    if were_harmed:
        eventually(lambda: _reaches_all(recording_front, two_recording_edges))
        for edge in two_recording_edges:
            edge.reset()
    return two_recording_edges


def _reaches_all(front: Front, edges: list[RecordingEdge]) -> bool:
    front.ask(f"{PREFIX}/shares")
    return all(edge.asked for edge in edges)


def new_ports() -> Ports:
    return Ports(recipients=free_port(), health=free_port(), admin=free_port())
