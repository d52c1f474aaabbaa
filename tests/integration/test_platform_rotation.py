"""Certificates are rotated under requests, authority and all, and no process is restarted."""

from __future__ import annotations

import shutil
import signal
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.config.schema import TlsConfig
from gateway.v1 import catalog_pb2, catalog_pb2_grpc
from tests.certificates import Authority, new_authority
from tests.components import ALL_IN_ONE, SPLIT
from tests.deployments import Deployment, ServerProcess, all_in_one, split
from tests.http import request
from tests.integration.conftest import TOKEN
from tests.integration.platform_services import Platform
from tests.waiting import eventually

NAMES = ("edge", "catalog", "snapshot", "presign", "vending")
QUERY = "/shares/sample/schemas/sales/tables/orders/query"


class Rotation:
    """The certificates of a deployment, which its processes read where they were first written."""

    def __init__(self, deployment: Deployment, directory: Path) -> None:
        assert deployment.authority is not None
        self.deployment = deployment
        self.old: Authority = deployment.authority
        self.new = new_authority(directory)
        self.current = self.old
        self._bundle = self.old.ca
        # Kept: the file that says it is the one that is about to be rotated.
        self.old_ca = self.old.ca.read_bytes()

    def trust(self, *authorities: bytes) -> None:
        self._taken_up(lambda: self._bundle.write_bytes(b"".join(authorities)))

    def issue(self) -> None:
        def write() -> None:
            for name in NAMES:
                fresh = self.new.issue(name)
                shutil.copy(fresh.certificate, self.old.directory / f"{name}.pem")
                shutil.copy(fresh.key, self.old.directory / f"{name}.key")

        self._taken_up(write)
        self.current = self.new

    def _taken_up(self, write) -> None:
        servers = self.deployment.processes.values()
        before = {server: renewals(server) for server in servers}
        write()
        eventually(lambda: all(renewals(server) > before[server] for server in servers))


def renewals(server: ServerProcess, outcome: str = "success", use: str = "services") -> float:
    return server.metric(f'sluice_certificate_renewals_total{{outcome="{outcome}",use="{use}"}} ')


@contextmanager
def requests_to(deployment: Deployment) -> Iterator[Counter[int]]:
    """Send queries one after the other for as long as the block lasts, and count their statuses."""
    statuses: Counter[int] = Counter()
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            answer = request(deployment.base_url + QUERY, token=TOKEN, method="POST", body=b"{}")
            statuses[answer.status if answer.body.endswith(b"}\n") else 0] += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield statuses
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def rotation(tmp_path_factory, settings) -> Iterator[Rotation]:
    directory = tmp_path_factory.mktemp("rotation")
    # Connections are made anew all the time, so that an old certificate would be noticed.
    own = settings | {"services": {"maxConnectionAge": "1s"}}
    with split(directory / "gateway", own) as deployment:
        yield Rotation(deployment, directory / "new")


@pytest.mark.component(SPLIT)
def test_an_authority_is_replaced_under_requests_and_none_fails(rotation, tmp_path):
    witness = rotation.old.issue("witness")
    with requests_to(rotation.deployment) as statuses:
        new_ca = rotation.new.ca.read_bytes()
        rotation.trust(rotation.old_ca, new_ca)
        rotation.issue()
        rotation.trust(new_ca)
        answered = statuses[200]
        eventually(lambda: statuses[200] > answered + 50 or len(statuses) > 1)

    assert set(statuses) == {200}
    of_the_old = witness.model_copy(update={"ca": str(rotation.new.ca)})
    catalog = Platform(rotation.deployment, tmp_path).address("catalog")
    assert status_of(catalog, of_the_old) is grpc.StatusCode.UNAVAILABLE
    assert status_of(catalog, rotation.new.issue("edge")) is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.component(SPLIT)
def test_a_certificate_without_its_key_is_warned_of_and_not_used(rotation):
    presign = rotation.deployment.processes["presign"]
    fresh = rotation.new.issue("presign")
    shutil.copy(fresh.certificate, rotation.old.directory / "presign.pem")
    eventually(lambda: renewals(presign, "failure") == 1)

    assert "is refused, the old one stays in use" in presign.log()
    url = rotation.deployment.base_url + QUERY
    assert request(url, token=TOKEN, method="POST", body=b"{}").status == 200


@pytest.mark.component(SPLIT)
def test_a_process_that_stops_tells_its_watchers_first(rotation, tmp_path):
    vending = rotation.deployment.processes["vending"]
    address = Platform(rotation.deployment, tmp_path).address("vending")
    # Whatever the tests before have left the processes trusting.
    tls = rotation.current.issue("monitor")
    with channel_to(address, tls) as channel:
        asked = health_pb2.HealthCheckRequest(service="gateway.v1.Vending")
        watch = health_pb2_grpc.HealthStub(channel).Watch(asked, timeout=120)
        serving = next(watch).status
        vending.process.send_signal(signal.SIGTERM)
        rest = [news.status for news in watch]

    assert serving == health_pb2.HealthCheckResponse.SERVING
    assert rest == [health_pb2.HealthCheckResponse.NOT_SERVING]
    assert vending.stop() == 0


def channel_to(address: str, tls: TlsConfig) -> grpc.Channel:
    files = {key: Path(file).read_bytes() for key, file in tls.model_dump().items()}
    credentials = grpc.ssl_channel_credentials(files["ca"], files["key"], files["certificate"])
    return grpc.secure_channel(address, credentials)


def status_of(address: str, tls: TlsConfig) -> grpc.StatusCode:
    """Return how a call ends that says nothing about whom it is for."""
    with channel_to(address, tls) as channel:
        stub = catalog_pb2_grpc.CatalogStub(channel)
        caller = catalog_pb2.Caller(token_sha256=bytes(32))
        with pytest.raises(grpc.RpcError) as caught:
            stub.ListShares(catalog_pb2.ListSharesRequest(caller=caller), timeout=60)
    code: grpc.StatusCode = caught.value.code()
    return code


@pytest.mark.component(ALL_IN_ONE)
def test_the_rest_listener_shows_a_renewed_certificate(tmp_path, settings):
    authority = new_authority(tmp_path / "pki")
    tls = authority.issue("edge")
    own = settings | {"ssl": {"certificateFile": tls.certificate, "certificateKeyFile": tls.key}}
    with all_in_one(tmp_path / "gateway", own) as deployment:
        parts = urlsplit(deployment.base_url)
        address = str(parts.hostname), int(parts.port or 0)
        before = ssl.get_server_certificate(address)
        authority.issue("edge")
        eventually(lambda: renewals(deployment.edge, use="rest") == 1)

        assert ssl.get_server_certificate(address) == Path(tls.certificate).read_text() != before
