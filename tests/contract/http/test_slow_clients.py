"""Clients that are slow, idle or too many, on real connections."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from gateway.edge.server import Limits
from tests.contract.http.client import Client, receive
from tests.contract.http.deployments import InProcess, fakes

_LIMITS = Limits(
    header_timeout=timedelta(seconds=0.3),
    write_timeout=timedelta(seconds=0.5),
    keep_alive=timedelta(seconds=0.6),
    max_connections=20,
)


@pytest.fixture(scope="module")
def running() -> Iterator[InProcess]:
    with fakes(_LIMITS, body_timeout=timedelta(seconds=0.3)) as started:
        yield started


@pytest.fixture
def connection(running: InProcess) -> Iterator[socket.socket]:
    with Client(running.gateway).open() as opened:
        yield opened


def head(running: InProcess, method: str, path: str, *fields: str) -> bytes:
    lines = [
        f"{method} /delta-sharing{path} HTTP/1.1",
        "Host: h",
        f"Authorization: Bearer {running.gateway.token}",
    ]
    return "\r\n".join([*lines, *fields, "", ""]).encode()


def drip(connection: socket.socket, data: bytes) -> None:
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(0.01)


def test_a_client_that_sends_nothing_is_closed(connection: socket.socket) -> None:
    started = time.monotonic()
    assert receive(connection) == b""
    assert time.monotonic() - started < 5


def test_a_client_that_sends_its_head_byte_by_byte_is_closed(
    running: InProcess, connection: socket.socket
) -> None:
    started = time.monotonic()
    with pytest.raises(OSError, match=r"Broken pipe|reset"):
        drip(connection, head(running, "GET", "/shares", "X: " + "y" * 500))
    assert time.monotonic() - started < 5


def test_a_client_that_does_not_finish_its_body_gets_408(
    running: InProcess, connection: socket.socket
) -> None:
    path = f"{running.gateway.plain.path}/query"
    connection.sendall(head(running, "POST", path, "Content-Length: 100") + b"{")
    assert receive(connection).startswith(b"HTTP/1.1 408 ")


def test_a_connection_that_is_idle_is_closed_after_a_while(
    running: InProcess, connection: socket.socket
) -> None:
    connection.sendall(head(running, "GET", "/shares"))
    started = time.monotonic()
    assert receive(connection).startswith(b"HTTP/1.1 200 ")
    assert 0.4 < time.monotonic() - started < 5


def test_a_client_that_does_not_read_its_answer_is_cut_off(running: InProcess) -> None:
    world = running.services.snapshot.world
    before = world.tables
    large = next(table for table in before if table.name == running.gateway.large.name)
    world.tables = [
        *(table for table in before if table is not large),
        type(large)(share=large.share, schema=large.schema, name=large.name, files=100_000),
    ]
    try:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(30)
            connection.connect(("127.0.0.1", urlsplit(running.gateway.url).port))
            connection.sendall(
                head(running, "POST", f"{running.gateway.large.path}/query", "Content-Length: 0")
            )
            deadline = time.monotonic() + 20
            while not any(event.operation == "queryTable" and event.files for event in running.audit.noted):
                assert time.monotonic() < deadline, "the server still holds the connection"
                time.sleep(0.05)
            assert not receive(connection).endswith(b"0\r\n\r\n")
    finally:
        world.tables = before


def test_connections_beyond_the_limit_are_refused_and_those_within_are_served(running: InProcess) -> None:
    with fakes(Limits(max_connections=2)) as small:
        client = Client(small.gateway)
        with client.open() as first, client.open() as second:
            first.sendall(head(small, "GET", "/shares"))
            second.sendall(head(small, "GET", "/shares"))
            assert first.recv(65536).startswith(b"HTTP/1.1 200 ")
            assert second.recv(65536).startswith(b"HTTP/1.1 200 ")
            with client.open() as third:
                assert receive(third).startswith(b"HTTP/1.1 503 ")
