"""Certificates are rotated under requests, authority and all, and no process is restarted."""

from __future__ import annotations

import shutil
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest

from gateway.config.schema import TlsConfig
from gateway.v1 import catalog_pb2, catalog_pb2_grpc
from tests.certificates import Authority, new_authority
from tests.components import ALL_IN_ONE, SPLIT
from tests.deployments import Deployment, ServerProcess, all_in_one, split
from tests.http import eventually, request
from tests.integration.conftest import TOKEN
from tests.integration.platform import Platform

NAMES = ("edge", "catalog", "snapshot", "presign", "vending")
QUERY = "/shares/sample/schemas/sales/tables/orders/query"


class Rotation:
    """The certificates of a deployment, which its processes read where they were first written."""

    def __init__(self, deployment: Deployment, directory: Path) -> None:
        assert deployment.authority is not None
        self.deployment = deployment
        self.old: Authority = deployment.authority
        self.new = new_authority(directory)
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

    def _taken_up(self, write) -> None:
        servers = self.deployment.processes.values()
        before = {server: renewals(server) for server in servers}
        write()
        eventually(lambda: all(renewals(server) > before[server] for server in servers), seconds=30)


def renewals(server: ServerProcess, outcome: str = "success", use: str = "services") -> float:
    wanted = f'sluice_certificate_renewals_total{{outcome="{outcome}",use="{use}"}} '
    lines = request(f"{server.metrics_url}/metrics").body.decode().splitlines()
    return sum(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))


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


@pytest.mark.component(SPLIT)
def test_an_authority_is_replaced_under_requests_and_none_fails(tmp_path, settings):
    # Connections are made anew all the time, so that an old certificate would be noticed.
    own = settings | {"services": {"maxConnectionAge": "1s"}}
    with split(tmp_path / "gateway", own) as deployment:
        rotation = Rotation(deployment, tmp_path / "new")
        witness = rotation.old.issue("witness")
        with requests_to(deployment) as statuses:
            new_ca = rotation.new.ca.read_bytes()
            rotation.trust(rotation.old_ca, new_ca)
            rotation.issue()
            rotation.trust(new_ca)
            answered = statuses[200]
            eventually(lambda: statuses[200] > answered + 50 or len(statuses) > 1)

        assert set(statuses) == {200}
        of_the_old = witness.model_copy(update={"ca": str(rotation.new.ca)})
        catalog = Platform(deployment, tmp_path).address("catalog")
        assert status_of(catalog, of_the_old) is grpc.StatusCode.UNAVAILABLE
        assert status_of(catalog, rotation.new.issue("edge")) is grpc.StatusCode.UNAUTHENTICATED

        break_pair(rotation, deployment.processes["presign"])
        assert request(deployment.base_url + QUERY, token=TOKEN, method="POST", body=b"{}").status == 200


def break_pair(rotation: Rotation, server: ServerProcess) -> None:
    """Renew a certificate without its key, as one who forgets half of it."""
    fresh = rotation.new.issue(server.name)
    shutil.copy(fresh.certificate, rotation.old.directory / f"{server.name}.pem")
    eventually(lambda: renewals(server, "failure") == 1, seconds=30)
    assert "is refused, the old one stays in use" in server.log()


def status_of(address: str, tls: TlsConfig) -> grpc.StatusCode:
    """Return how a call ends that says nothing about whom it is for."""
    files = {key: Path(file).read_bytes() for key, file in tls.model_dump().items()}
    credentials = grpc.ssl_channel_credentials(files["ca"], files["key"], files["certificate"])
    with grpc.secure_channel(address, credentials) as channel:
        stub = catalog_pb2_grpc.CatalogStub(channel)
        caller = catalog_pb2.Caller(token_sha256=bytes(32))
        with pytest.raises(grpc.RpcError) as caught:
            stub.ListShares(catalog_pb2.ListSharesRequest(caller=caller), timeout=10)
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
        eventually(lambda: renewals(deployment.edge, use="rest") == 1, seconds=30)

        assert ssl.get_server_certificate(address) == Path(tls.certificate).read_text() != before
