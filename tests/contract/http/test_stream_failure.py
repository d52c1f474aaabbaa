"""An answer that fails after its 200, on a real connection."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gateway.errors import Unavailable
from tests.compressed import Reader
from tests.contract.http.client import Client, receive
from tests.contract.http.deployments import InProcess, fakes
from tests.waiting import eventually


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


def test_the_connection_is_aborted_without_the_final_chunk(running: InProcess) -> None:
    running.services.snapshot.fail_after = 2
    with ask(running) as connection:
        answer = receive(connection)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert not answer.endswith(b"0\r\n\r\n")
    eventually(lambda: bool(running.audit.noted))
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


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_compressed_answer_is_aborted_without_its_end_or_the_final_chunk(
    running: InProcess, coding: str
) -> None:
    running.services.snapshot.fail_after = 2
    with ask(running, **{"Accept-Encoding": coding}) as connection:
        answer = receive(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Encoding: {coding}".encode() in head
    assert not answer.endswith(b"0\r\n\r\n")
    reader = Reader(coding)
    reader.read(dechunked(body))
    assert not reader.is_whole


def dechunked(data: bytes) -> bytes:
    """Return what the whole chunks hold."""
    found, position = b"", 0
    while (end := data.find(b"\r\n", position)) >= 0:
        size, start = int(data[position:end], 16), end + 2
        if len(data) < start + size + 2:
            break
        found += data[start : start + size]
        position = start + size + 2
    return found


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_client_of_http_1_0_sees_a_reset_of_a_compressed_answer_too(
    running: InProcess, coding: str
) -> None:
    running.services.snapshot.fail_after = 2
    headers = {"Accept-Encoding": coding}
    with ask(running, version="1.0", **headers) as connection, pytest.raises(ConnectionResetError):
        drain(connection)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_the_error_that_was_asked_for_is_the_end_of_a_compressed_answer(
    running: InProcess, coding: str
) -> None:
    running.services.snapshot.fail_after = 2
    running.services.snapshot.error = Unavailable("the storage does not answer")
    headers = {"delta-sharing-capabilities": "includeEndStreamAction=true", "Accept-Encoding": coding}
    with ask(running, version="1.0", **headers) as connection:
        head, _, body = receive(connection).partition(b"\r\n\r\n")
    assert f"Content-Encoding: {coding}".encode() in head
    reader = Reader(coding)
    assert json.loads(reader.read(body).splitlines()[-1]) == {
        "endStreamAction": {"errorMessage": "the storage does not answer", "httpStatusErrorCode": 503}
    }
    assert reader.is_whole


def test_a_client_that_goes_away_stops_the_services_behind(running: InProcess) -> None:
    running.services.presign.hold = True
    with ask(running):
        eventually(lambda: bool(running.services.presign.requests))
    eventually(lambda: running.services.snapshot.closed == 1)
    eventually(lambda: bool(running.audit.noted))
    assert running.audit.noted[0].outcome == "CLIENT_GONE"
    assert running.services.presign.cancelled == 1


def test_a_client_that_reads_nothing_is_waited_for_and_stops_the_work_when_it_goes(
    running: InProcess,
) -> None:
    snapshot, presign = running.services.snapshot, running.services.presign
    snapshot.world.files_per_page = 250
    name = running.gateway.large.name
    snapshot.world.tables = [
        replace(table, files=200_000) if table.name == name else table for table in snapshot.world.tables
    ]
    with ask(running):
        before = running.settled_pages(least=3)
        # What the kernel holds for the connection is not ours to bound; the whole would be 800 pages.
        assert before < 400
    eventually(lambda: snapshot.closed == 1)
    # One may have been on its way into the kernel.
    assert max(snapshot.pages, len(presign.requests)) <= before + 1
    eventually(lambda: bool(running.audit.noted))
    assert running.audit.noted[0].outcome == "CLIENT_GONE"
