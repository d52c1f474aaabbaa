"""Streams through a real proxy: line by line, back-pressure, and never a short answer that looks whole."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

from gateway.errors import Unavailable
from tests.components import ENVOY, NGINX
from tests.contract.http.deployments import InProcess, fakes
from tests.proxies.clients import READER_NAMES, READERS, Broken
from tests.proxies.envoy import running_envoy
from tests.proxies.gate import Gate
from tests.proxies.nginx import running_nginx
from tests.proxies.proxy import Proxy
from tests.proxies.stream import Refused, streaming
from tests.waiting import eventually

END = "includeEndStreamAction=true"
PROXIES = {"nginx": running_nginx, "envoy": running_envoy}
# The listener of the proxy, and what the client accepts: compressed by nobody, the gateway, or the proxy.
CASES = pytest.mark.parametrize(
    ("listener", "accepted"),
    [
        ("plain", "identity"),
        ("plain", "gzip"),
        ("plain", "zstd"),
        ("compressing", "gzip"),
        ("untold", "identity"),
        ("untold", "gzip"),
    ],
)
PAGE, FILES = 1000, 2500
_TIMEOUT = 60


@pytest.fixture(scope="module")
def gateway() -> Iterator[InProcess]:
    with fakes() as started:
        yield started


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("envoy", marks=pytest.mark.component(ENVOY)),
        pytest.param("nginx", marks=[pytest.mark.component(NGINX), pytest.mark.system]),
    ],
)
def proxy(request, gateway: InProcess, tmp_path_factory) -> Iterator[Proxy]:
    directory, upstream = tmp_path_factory.mktemp(request.param), urlsplit(gateway.gateway.url).port
    assert upstream is not None
    with PROXIES[request.param](directory, upstream) as started:
        yield started


@dataclass(frozen=True)
class Way:
    """A gateway behind a proxy, as it was before any test used it."""

    gateway: InProcess
    proxy: Proxy

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.gateway.gateway.token}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        }

    def query(self, listener: str = "plain") -> str:
        facts = self.gateway.gateway
        return self.proxy.url(listener, facts.url) + f"{facts.large.path}/query"

    def hold_pages_after(self, pages: int) -> Gate:
        """Let so many pages be made of what is asked for from now on, and more as the gate is told."""
        gate = self.gateway.services.snapshot.gate = Gate(pages, self.gateway.loop)
        return gate

    def grow(self, files: int) -> None:
        world = self.gateway.services.snapshot.world
        name = self.gateway.gateway.large.name
        world.tables = [
            replace(table, files=files) if table.name == name else table for table in world.tables
        ]


@pytest.fixture
def way(gateway: InProcess, proxy: Proxy) -> Way:
    snapshot, presign = gateway.services.snapshot, gateway.services.presign
    eventually(lambda: snapshot.closed == len(snapshot.requests))
    snapshot.gate = snapshot.fail_after = snapshot.error = None
    snapshot.pages = snapshot.closed = 0
    for kept in (snapshot.requests, presign.requests, gateway.audit.noted, gateway.peers):
        kept.clear()
    way = Way(gateway, proxy)
    way.grow(FILES)
    return way


@CASES
def test_a_page_arrives_before_the_next_one_is_made(way: Way, listener: str, accepted: str) -> None:
    gate = way.hold_pages_after(1)
    with streaming(way.query(listener), way.headers | {"Accept-Encoding": accepted}) as stream:
        for page in (1, 2):
            stream.read_lines(2 + PAGE * page)
            assert len(stream.lines) == 2 + PAGE * page
            assert way.gateway.services.snapshot.pages == page
            gate.let_pass()
        stream.read_to_end()
    assert len(stream.lines) == 2 + FILES
    assert list(json.loads(stream.lines[0])) == ["protocol"]


@pytest.mark.parametrize("client", READER_NAMES)
@pytest.mark.parametrize("listener", ["plain", "compressing"])
def test_every_client_reads_a_whole_answer(way: Way, listener: str, client: str) -> None:
    # This one leaves it to its caller to make sense of what is compressed.
    accepted = "identity" if client == "http.client" else "gzip"
    body = READERS[client](way.query(listener), way.headers | {"Accept-Encoding": accepted})
    assert body.count(b"\n") == 2 + FILES


@pytest.mark.parametrize("client", READER_NAMES)
@CASES
def test_every_client_notices_that_an_answer_broke_off(
    way: Way, listener: str, accepted: str, client: str
) -> None:
    way.gateway.services.snapshot.fail_after = 2
    with pytest.raises(Broken):
        READERS[client](way.query(listener), way.headers | {"Accept-Encoding": accepted})
    eventually(lambda: bool(way.gateway.audit.noted))
    assert way.gateway.audit.noted[0].outcome == "INTERNAL_ERROR"


@CASES
def test_the_error_arrives_in_the_last_line_where_it_was_asked_for(
    way: Way, listener: str, accepted: str
) -> None:
    way.gateway.services.snapshot.fail_after = 2
    way.gateway.services.snapshot.error = Unavailable("the storage does not answer")
    headers = way.headers | {"Accept-Encoding": accepted, "delta-sharing-capabilities": END}
    with streaming(way.query(listener), headers) as stream:
        stream.read_to_end()
    assert json.loads(stream.lines[-1]) == {
        "endStreamAction": {"errorMessage": "the storage does not answer", "httpStatusErrorCode": 503}
    }
    assert len(stream.lines) == 2 + 2 * PAGE + 1


@CASES
def test_a_client_that_goes_away_stops_the_work_at_the_page_that_is_being_made(
    way: Way, listener: str, accepted: str
) -> None:
    way.hold_pages_after(2)
    snapshot, presign = way.gateway.services.snapshot, way.gateway.services.presign
    with streaming(way.query(listener), way.headers | {"Accept-Encoding": accepted}) as stream:
        stream.read_lines(2 + PAGE)
    eventually(lambda: snapshot.closed == 1)
    assert max(snapshot.pages, len(presign.requests)) <= 2
    # Not the first that is noted: a stream of the test before may still come to its end.
    eventually(lambda: "CLIENT_GONE" in {event.outcome for event in way.gateway.audit.noted})


@pytest.mark.parametrize("listener", ["plain", "untold"])
def test_a_client_that_reads_nothing_is_waited_for_and_stops_the_work_when_it_goes(
    way: Way, listener: str
) -> None:
    way.grow(100_000)
    snapshot, presign = way.gateway.services.snapshot, way.gateway.services.presign
    with streaming(way.query(listener), way.headers, receive_buffer=4096) as stream:
        stream.read_lines(1)
        made = way.gateway.settled_pages()
        # What kernels and the proxy hold is not ours to bound; the whole would be 100 pages.
        assert made < 90
    eventually(lambda: snapshot.closed == 1)
    # A proxy that had waited for a core may have taken a few more.
    assert max(snapshot.pages, len(presign.requests)) < 100


def test_many_requests_share_few_connections(way: Way) -> None:
    parts = urlsplit(way.query())
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
    connection.connect()
    first = connection.sock
    base = parts.path.partition("/shares")[0]
    asked = [
        ("POST", parts.path, 200),
        ("GET", f"{base}/shares", 200),
        ("GET", f"{base}/shares/none", 404),
        ("POST", parts.path, 200),
    ]
    for method, path, status in asked * 10:
        connection.request(method, path, b"{}" if method == "POST" else None, way.headers)
        response = connection.getresponse()
        assert response.status == status
        response.read()
    assert connection.sock is first
    connection.close()
    assert len(way.gateway.peers) == 40
    assert len(set(way.gateway.peers)) <= 2


def test_an_answer_that_breaks_off_takes_no_other_with_it(way: Way) -> None:
    gate = way.hold_pages_after(1)
    snapshot = way.gateway.services.snapshot
    with streaming(way.query(), way.headers) as whole:
        eventually(lambda: gate.waiting == 1)
        snapshot.gate, snapshot.fail_after = None, snapshot.pages + 1
        with streaming(way.query(), way.headers) as broken:
            assert is_broken(broken)
        snapshot.fail_after = None
        gate.let_pass()
        assert not is_broken(whole)
        with streaming(way.query(), way.headers) as another:
            assert not is_broken(another)


def is_broken(stream) -> bool:
    try:
        stream.read_to_end()
    except (http.client.IncompleteRead, ConnectionResetError):
        return True
    assert len(stream.lines) == 2 + FILES
    return False


def test_a_pause_that_is_too_long_for_a_hasty_proxy_breaks_the_answer_and_not_one_of_a_patient_one(
    way: Way,
) -> None:
    gate = way.hold_pages_after(1)
    with streaming(way.query("plain"), way.headers) as patient:
        eventually(lambda: gate.waiting == 1)
        way.hold_pages_after(1)
        # Both are paused for as long as the hasty one has patience, which the first page may take on a busy
        # machine.
        try:
            with streaming(way.query("hasty"), way.headers) as hasty:
                assert is_broken(hasty)
        except Refused as refusal:
            assert refusal.status == 504  # noqa: PT017 -- nothing may be raised, too
        way.gateway.services.snapshot.gate = None
        gate.let_pass()
        assert not is_broken(patient)
