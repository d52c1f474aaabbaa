"""Edges that come and go, and a certificate that is renewed, while an answer is under way."""

from __future__ import annotations

import signal
import ssl
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import pytest

from tests.components import NGINX
from tests.contract.http.deployments import InProcess, fakes
from tests.integration.api_gateway.conftest import new_ports
from tests.proxies.front import PREFIX, EdgeAddress, Front, put_certificate
from tests.proxies.front_envoy import put_edges
from tests.proxies.front_nginx import put_nginx_edges, reload_nginx
from tests.proxies.gate import Gate
from tests.proxies.recording_edge import RecordingEdge
from tests.proxies.stream import streaming
from tests.stores.process import listens
from tests.waiting import eventually

FILES = 2500


@pytest.fixture
def gateway() -> Iterator[InProcess]:
    with fakes() as started:
        yield started


@pytest.fixture
def edge(gateway: InProcess, two_recording_edges) -> EdgeAddress:
    """The one that answers; another one says that it is ready."""
    port = urlsplit(gateway.gateway.url).port
    assert port is not None
    return EdgeAddress(port=port, health_port=two_recording_edges[0].address.port)


@pytest.fixture
def front(start, edge: EdgeAddress, authority, tmp_path) -> Iterator[Front]:
    with start(tmp_path / "front", new_ports(), [edge], authority) as front:
        yield front


def change_edges(kind: str, front: Front, edges: Sequence[EdgeAddress]) -> None:
    if kind == "envoy":
        put_edges(front.directory, edges)
    else:
        put_nginx_edges(front.directory, edges)
        reload_nginx(front)


def common_name(front: Front) -> str:
    connection = front.connect()
    connection.connect()
    try:
        assert isinstance(connection.sock, ssl.SSLSocket)
        shown = connection.sock.getpeercert()
        assert shown is not None
        return str(dict(part[0] for part in shown["subject"])["commonName"])  # type: ignore[misc]
    finally:
        connection.close()


def test_a_stream_is_finished_by_the_edge_that_began_it_while_others_take_over(
    kind, front: Front, gateway: InProcess, two_recording_edges: list[RecordingEdge]
) -> None:
    others = two_recording_edges
    for other in others:
        other.reset()
    gate = gateway.services.snapshot.gate = Gate(1, gateway.loop)
    headers = {"Authorization": f"Bearer {gateway.gateway.token}", "Content-Type": "application/json"}
    url = f"{front.base_url}{gateway.gateway.large.path}/query"
    with streaming(url, headers, tls=front.tls()) as stream:
        stream.read_lines(2)
        change_edges(kind, front, [other.address for other in others])
        eventually(lambda: is_passed_on(front, others))
        gate.let_pass(2)
        stream.read_to_end()
    assert len(stream.lines) == 2 + FILES


@pytest.mark.parametrize(
    "kind", [pytest.param("nginx", marks=[pytest.mark.component(NGINX), pytest.mark.system])], indirect=True
)
def test_an_nginx_that_is_told_to_quit_finishes_its_streams(front: Front, gateway: InProcess) -> None:
    gate = gateway.services.snapshot.gate = Gate(1, gateway.loop)
    headers = {"Authorization": f"Bearer {gateway.gateway.token}", "Content-Type": "application/json"}
    url = f"{front.base_url}{gateway.gateway.large.path}/query"
    with streaming(url, headers, tls=front.tls()) as stream:
        stream.read_lines(2)
        front.server.process.send_signal(signal.SIGQUIT)
        eventually(lambda: not listens(front.ports.recipients))
        gate.let_pass(2)
        stream.read_to_end()
    assert len(stream.lines) == 2 + FILES
    assert front.server.process.wait(60) == 0


def is_passed_on(front: Front, edges: Sequence[RecordingEdge]) -> bool:
    front.ask(f"{PREFIX}/elsewhere")
    return all(edge.asked for edge in edges)


def test_a_renewed_certificate_is_shown(kind, front: Front) -> None:
    assert common_name(front) == "server"
    put_certificate(front.directory, front.authority, "renewed")
    if kind == "nginx":
        reload_nginx(front)
    eventually(lambda: common_name(front) == "renewed")
