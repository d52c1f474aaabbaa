"""An answer that fails after its 200, on a real connection."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from gateway.errors import Unavailable
from tests.contract.http.client import Client, receive
from tests.contract.http.deployments import InProcess, fakes

_PATIENCE = 10


@pytest.fixture
def running() -> Iterator[InProcess]:
    with fakes() as started:
        yield started


def ask(running: InProcess, version: str = "1.1", **headers: str) -> socket.socket:
    gateway = running.gateway
    fields = {"Host": "h", "Authorization": f"Bearer {gateway.token}", "Content-Length": "0", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    connection = Client(gateway).open()
    path = f"/delta-sharing{gateway.large.path}/query"
    connection.sendall(f"POST {path} HTTP/{version}\r\n{head}\r\n".encode())
    return connection


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_the_connection_is_aborted_without_the_final_chunk(running: InProcess) -> None:
    running.services.snapshot.fail_after = 2
    with ask(running) as connection:
        answer = receive(connection)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert not answer.endswith(b"0\r\n\r\n")
    until(lambda: bool(running.audit.noted))
    assert running.audit.noted[0].outcome == "INTERNAL_ERROR"


def test_a_client_of_http_1_0_sees_a_reset_not_an_end(running: InProcess) -> None:
    running.services.snapshot.fail_after = 2
    with ask(running, version="1.0") as connection, pytest.raises(ConnectionResetError):
        drain(connection)


def drain(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def test_the_last_line_carries_the_error_where_it_was_asked_for(running: InProcess) -> None:
    running.services.snapshot.fail_after = 2
    running.services.snapshot.error = Unavailable("the storage does not answer")
    headers = {"delta-sharing-capabilities": "includeEndStreamAction=true", "Connection": "close"}
    with ask(running, version="1.0", **headers) as connection:
        answer = receive(connection)
    assert json.loads(answer.splitlines()[-1]) == {
        "endStreamAction": {"errorMessage": "the storage does not answer", "httpStatusErrorCode": 503}
    }


def test_a_client_that_goes_away_stops_the_services_behind(running: InProcess) -> None:
    running.services.presign.hold = True
    with ask(running):
        until(lambda: bool(running.services.presign.requests))
    until(lambda: running.services.snapshot.closed == 1)
    until(lambda: bool(running.audit.noted))
    assert running.audit.noted[0].outcome == "CLIENT_GONE"
    assert running.services.presign.cancelled == 1


def test_a_client_that_reads_nothing_is_waited_for(running: InProcess) -> None:
    running.services.snapshot.world.files_per_page = 250
    tables = running.services.snapshot.world.tables
    large = next(table for table in tables if table.name == running.gateway.large.name)
    running.services.snapshot.world.tables = [
        *(table for table in tables if table is not large),
        type(large)(share=large.share, schema=large.schema, name=large.name, files=200_000),
    ]
    with ask(running):
        until(lambda: running.services.snapshot.pages > 2)
        before = -1
        while before != running.services.snapshot.pages:
            before = running.services.snapshot.pages
            time.sleep(0.3)
        # What the kernel holds for the connection is not ours to bound; the whole would be 800 pages.
        assert before < 400
