"""TLS between the API gateway and the edges, as the shipped files and the docs say to turn it on."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.config.schema import TlsConfig
from tests.certificates import Authority, new_authority
from tests.components import ENVOY
from tests.integration.api_gateway.conftest import new_ports
from tests.proxies.front import PREFIX, Front, StartFront
from tests.proxies.recording_edge import RecordingEdge, recording_edge
from tests.repository import ROOT
from tests.waiting import eventually

EDGE_NAME = "edge.sluice.internal"
SHARES = f"{PREFIX}/shares"


def turned_on(kind: str) -> Mapping[str, str]:
    """Return what is changed in the shipped files."""
    if kind == "nginx":
        return {
            "proxy_pass http://edges;": "proxy_pass https://edges;",
            "# proxy_ssl_trusted_certificate": "proxy_ssl_trusted_certificate",
        }
    shipped = (ROOT / "deploy" / "envoy" / "envoy.yaml").read_text()
    found = re.search(r"^      # transport_socket:\n(      # .*\n)+", shipped, re.MULTILINE)
    assert found
    # The test's own directory has been put into the text by then.
    lines = [line for line in found[0].splitlines() if "/etc/envoy" not in line]
    return {f"{line}\n": f"{line.replace('# ', '', 1)}\n" for line in lines} | {
        "      #         sds_config:": "              sds_config:"
    }


@pytest.fixture(scope="module")
def inner(tmp_path_factory) -> Authority:
    """The authority of the edges' certificates, which recipients know nothing of."""
    return new_authority(tmp_path_factory.mktemp("inner"))


def put_authority(directory: Path, authority: Authority) -> None:
    place = directory / "edges-tls"
    place.mkdir(parents=True, exist_ok=True)
    fresh = place / "ca.new"
    shutil.copy(authority.ca, fresh)
    fresh.replace(place / "ca.crt")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a front is put before edges that speak TLS."""

    kind: str
    start: StartFront
    directory: Path
    authority: Authority
    # Says of the edges that they are ready, in plain text, as their metrics ports do.
    health: RecordingEdge
    stack: ExitStack

    def edge(self, certificate: TlsConfig | None) -> RecordingEdge:
        return self.stack.enter_context(recording_edge(certificate, health_port=self.health.address.port))

    def front(self, inner: Authority, *edges: RecordingEdge) -> Front:
        """Start one that trusts an authority for its edges."""
        put_authority(self.directory, inner)
        addresses, changes = [edge.address for edge in edges], turned_on(self.kind)
        return self.stack.enter_context(
            self.start(self.directory, new_ports(), addresses, self.authority, changes=changes)
        )


@pytest.fixture
def place(kind, start, authority, tmp_path) -> Iterator[Place]:
    with ExitStack() as stack:
        health = stack.enter_context(recording_edge())
        yield Place(kind, start, tmp_path / "front", authority, health, stack)


def test_requests_reach_edges_over_tls_and_are_balanced_by_their_health(place: Place, inner) -> None:
    certificate = inner.issue("edge", EDGE_NAME)
    edges = [place.edge(certificate) for _ in range(2)]
    front = place.front(inner, *edges)
    for _ in range(20):
        assert front.ask(SHARES).status == 200
    assert all(edge.asked for edge in edges)


@pytest.mark.parametrize("shown", ["another name", "another authority", "no certificate"])
def test_no_request_reaches_who_cannot_prove_to_be_an_edge(place: Place, inner, tmp_path, shown: str) -> None:
    other = new_authority(tmp_path / "other")
    certificate = {
        "another name": inner.issue("catalog", "catalog.sluice.internal"),
        "another authority": other.issue("edge", EDGE_NAME),
        "no certificate": None,
    }[shown]
    edge = place.edge(certificate)
    answer = place.front(inner, edge).ask(SHARES, headers={"Authorization": "Bearer t"})
    assert (answer.status, answer.json["errorCode"]) == (503, "TEMPORARILY_UNAVAILABLE")
    assert not edge.asked


@pytest.mark.parametrize("kind", [pytest.param("envoy", marks=pytest.mark.component(ENVOY))], indirect=True)
def test_a_new_authority_is_taken_up_by_envoy(place: Place, inner, tmp_path) -> None:
    new = new_authority(tmp_path / "new")
    front = place.front(inner, place.edge(new.issue("edge", EDGE_NAME)))
    assert front.ask(SHARES).status == 503
    put_authority(front.directory, new)
    eventually(lambda: front.ask(SHARES).status == 200)
