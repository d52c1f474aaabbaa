"""Answers through the shipped configurations: line by line, and never a short one that looks whole."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.components import CURL
from tests.contract.http.deployments import InProcess, fakes
from tests.integration.api_gateway.conftest import new_ports
from tests.proxies.curl import BROKEN, http2_post
from tests.proxies.front import PREFIX, EdgeAddress, Front
from tests.proxies.gate import Gate
from tests.proxies.recording_edge import recording_edge
from tests.proxies.stream import streaming
from tests.waiting import eventually

PAGE, FILES = 1000, 2500


@pytest.fixture(scope="module")
def gateway() -> Iterator[InProcess]:
    with fakes() as started:
        yield started


@pytest.fixture(scope="module")
def front(start, gateway: InProcess, authority, tmp_path_factory) -> Iterator[Front]:
    port = urlsplit(gateway.gateway.url).port
    assert port is not None
    with recording_edge() as health:
        edge = EdgeAddress(port=port, health_port=health.address.port)
        with start(tmp_path_factory.mktemp("front"), new_ports(), [edge], authority) as started:
            yield started


@pytest.fixture
def snapshot(gateway: InProcess):
    """The service that makes the pages, as it was before any test used it."""
    service = gateway.services.snapshot
    eventually(lambda: service.closed == len(service.requests))
    service.gate = service.fail_after = service.error = None
    service.pages = service.closed = 0
    service.requests.clear()
    return service


@pytest.fixture
def headers(gateway: InProcess) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {gateway.gateway.token}",
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
    }


@pytest.fixture
def path(gateway: InProcess) -> str:
    return f"{PREFIX}{gateway.gateway.large.path}/query"


def test_a_page_arrives_before_the_next_one_is_made(front, gateway, snapshot, headers, path) -> None:
    gate = snapshot.gate = Gate(1, gateway.loop)
    with streaming(front.url + path, headers, tls=front.tls()) as stream:
        stream.read_lines(2 + PAGE)
        assert snapshot.pages == 1
        gate.let_pass(2)
        stream.read_to_end()
    assert len(stream.lines) == 2 + FILES


@pytest.mark.component(CURL)
def test_a_page_arrives_before_the_next_one_is_made_over_http_2(
    front, gateway, snapshot, headers, path
) -> None:
    gate = snapshot.gate = Gate(1, gateway.loop)
    with http2_post(front, path, headers) as answer:
        answer.read_lines(2 + PAGE)
        assert snapshot.pages == 1
        gate.let_pass(2)
        assert answer.read_to_end() == 0
    assert len(answer.lines) == 2 + FILES
    eventually(lambda: "HTTP/2" in front.access_log()[-1]["protocol"])


def test_an_answer_that_breaks_off_arrives_as_broken(front, snapshot, headers, path) -> None:
    snapshot.fail_after = 2
    with (
        streaming(front.url + path, headers, tls=front.tls()) as stream,
        pytest.raises((http.client.IncompleteRead, ConnectionResetError)),
    ):
        stream.read_to_end()


@pytest.mark.component(CURL)
def test_an_answer_that_breaks_off_arrives_as_broken_over_http_2(front, snapshot, headers, path) -> None:
    snapshot.fail_after = 2
    with http2_post(front, path, headers) as answer:
        assert answer.read_to_end() in BROKEN


def test_a_client_that_goes_away_stops_the_work(front, gateway, snapshot, headers, path) -> None:
    snapshot.gate = Gate(2, gateway.loop)
    with streaming(front.url + path, headers, tls=front.tls()) as stream:
        stream.read_lines(2 + PAGE)
    eventually(lambda: snapshot.closed == 1)
    assert snapshot.pages <= 2
