"""Clients that are slow, idle or too many, on real connections."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.edge.server import Connection, Limits
from gateway.edge.signing import SignedPage
from tests.contract.http.client import Client, receive
from tests.contract.http.deployments import InProcess, fakes
from tests.new_objects import NewObjects
from tests.waiting import eventually

_SHORT = timedelta(seconds=0.3)
# Seconds, within which a busy machine acts on a short limit: less than any other limit.
_SOON = 15


@pytest.fixture
def running(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    """A gateway of which at most one limit is short, so that a busy machine exceeds no other."""
    limits: dict[str, Any] = {"header_timeout": timedelta(minutes=1)} | getattr(request, "param", {})
    body_timeout = limits.pop("body_timeout", timedelta(minutes=1))
    with fakes(Limits(**limits), body_timeout=body_timeout) as started:
        yield started


@pytest.fixture
def connection(running: InProcess) -> Iterator[socket.socket]:
    with Client(running.gateway).open() as opened:
        yield opened


def short(limit: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("running", [{limit: _SHORT}], ids=[limit], indirect=True)


def head(running: InProcess, method: str, path: str, *fields: str) -> bytes:
    lines = [
        f"{method} /delta-sharing{path} HTTP/1.1",
        "Host: h",
        f"Authorization: Bearer {running.gateway.token}",
    ]
    return "\r\n".join([*lines, *fields, "", ""]).encode()


@contextmanager
def ended_soon() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < _SOON


def drip(connection: socket.socket, data: bytes) -> None:
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(0.01)


@short("header_timeout")
def test_a_client_that_sends_nothing_is_closed(connection: socket.socket) -> None:
    with ended_soon():
        assert receive(connection) == b""


@short("header_timeout")
def test_a_client_that_sends_its_head_byte_by_byte_is_closed(
    running: InProcess, connection: socket.socket
) -> None:
    with pytest.raises(OSError, match=r"Broken pipe|reset"):
        drip(connection, head(running, "GET", "/shares", "X: " + "y" * 500))


@short("body_timeout")
def test_a_client_that_does_not_finish_its_body_gets_408(
    running: InProcess, connection: socket.socket
) -> None:
    path = f"{running.gateway.plain.path}/query"
    connection.sendall(head(running, "POST", path, "Content-Length: 100") + b"{")
    with ended_soon():
        assert receive(connection).startswith(b"HTTP/1.1 408 ")


@short("keep_alive")
def test_a_connection_that_is_idle_is_closed_after_a_while(
    running: InProcess, connection: socket.socket
) -> None:
    connection.sendall(head(running, "GET", "/shares"))
    with ended_soon():
        assert receive(connection).startswith(b"HTTP/1.1 200 ")


def test_connection_that_is_idle_within_its_keep_alive_time_is_used_again(
    running: InProcess, connection: socket.socket
) -> None:
    for _ in range(2):
        connection.sendall(head(running, "GET", "/shares"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@contextmanager
def grown(running: InProcess, files: int) -> Iterator[None]:
    """Let the large table have so many files for a while."""
    world = running.services.snapshot.world
    before = world.tables
    name = running.gateway.large.name
    world.tables = [replace(table, files=files) if table.name == name else table for table in before]
    try:
        yield
    finally:
        world.tables = before


@contextmanager
def stalled(running: InProcess) -> Iterator[socket.socket]:
    """Ask for all files of the large table, and read nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", urlsplit(running.gateway.url).port))
        connection.sendall(head(running, "POST", f"{running.gateway.large.path}/query", "Content-Length: 0"))
        yield connection


@short("write_timeout")
def test_a_client_that_does_not_read_its_answer_is_cut_off(running: InProcess) -> None:
    with grown(running, 100_000), stalled(running) as connection:
        eventually(
            lambda: any(event.operation == "queryTable" and event.files for event in running.audit.noted),
            seconds=_SOON,
        )
        assert not receive(connection).endswith(b"0\r\n\r\n")


@pytest.mark.slow
def test_clients_that_read_nothing_hold_two_pages_each_and_slow_nobody_else_down() -> None:
    signed, opened = NewObjects(SignedPage), NewObjects(Connection)
    with fakes() as patient, grown(patient, 60_000), ExitStack() as streams:
        count = 5
        for _ in range(count):
            streams.enter_context(stalled(patient))
        made = patient.settled_pages(least=2 * count)
        pages = signed.find()
        buffered = [each.transport.get_write_buffer_size() for each in opened.find() if each.transport]
        assert len(buffered) == count
        # What the kernel holds for a connection is not ours to bound; the whole of each would be 60 pages.
        assert made < 40 * count
        assert 0 < len(pages) <= 2 * count
        # One piece at most, with the length before it.
        assert max(buffered) <= 256 * 1024 + 16
        answer = Client(patient.gateway).query(patient.gateway.large, {"limitHint": 5000})
        assert len(answer.streamed()) == 5002
        assert patient.settled_pages() == made + 5


def test_connections_beyond_the_limit_are_refused_and_those_within_are_served() -> None:
    with fakes(Limits(max_connections=2)) as small:
        client = Client(small.gateway)
        with client.open() as first, client.open() as second:
            first.sendall(head(small, "GET", "/shares"))
            second.sendall(head(small, "GET", "/shares"))
            assert first.recv(65536).startswith(b"HTTP/1.1 200 ")
            assert second.recv(65536).startswith(b"HTTP/1.1 200 ")
            with client.open() as third:
                assert receive(third).startswith(b"HTTP/1.1 503 ")
