"""Many requests over one connection: one after the other, or sent ahead."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import cast
from urllib.parse import urlsplit

import pytest

from tests.compressed import plain
from tests.contract.http.client import Client
from tests.contract.http.deployments import fakes
from tests.contract.http.facts import Gateway

ACCEPTED = ("identity", "gzip", "zstd")
_PATIENCE = 60


@contextmanager
def connected(gateway: Gateway) -> Iterator[http.client.HTTPConnection]:
    """Give a connection that is never opened anew behind our back."""
    parts = urlsplit(gateway.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
    connection.auto_open = 0
    connection.connect()
    try:
        yield connection
    finally:
        connection.close()


def query(connection: http.client.HTTPConnection, gateway: Gateway, accepted: str) -> list[bytes]:
    """Ask for the files of the large table, and return the lines."""
    headers = {"Authorization": f"Bearer {gateway.token}", "Accept-Encoding": accepted}
    path = urlsplit(gateway.url).path + f"{gateway.large.path}/query"
    connection.request("POST", path, b"{}", headers | {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == http.client.OK
    return plain(dict(response.headers), response.read()).splitlines()


@pytest.mark.smoke
def test_streams_errors_and_lists_follow_each_other_on_one_connection(gateway: Gateway) -> None:
    base = urlsplit(gateway.url).path
    headers = {"Authorization": f"Bearer {gateway.token}"}
    with connected(gateway) as connection:
        for accepted in ACCEPTED * 3:
            assert len(query(connection, gateway, accepted)) == 2 + gateway.large.files
            for path, status in (("/shares", 200), ("/shares/none", 404), ("/nothing", 404)):
                connection.request("GET", base + path, headers=headers | {"Accept-Encoding": accepted})
                response = connection.getresponse()
                assert response.status == status
                assert response.read()


def test_requests_that_are_sent_ahead_are_answered_in_their_order(client: Client, gateway: Gateway) -> None:
    base, token = urlsplit(gateway.url).path, gateway.token
    targets = [
        f"POST {base}{gateway.large.path}/query",
        f"GET {base}/shares",
        f"POST {base}{gateway.plain.path}/query",
        f"GET {base}/shares/none",
    ] * 3
    fields = f"Host: h\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    with client.open() as opened:
        # The body is a part of the request that it is counted for, even of one that has no use for it.
        opened.sendall(
            b"".join(f"{each} HTTP/1.1\r\n{fields}Content-Length: 2\r\n\r\n{{}}".encode() for each in targets)
        )
        with opened.makefile("rb") as stream:
            answers = [_next_answer(stream) for _ in targets]
    assert [status for status, _ in answers] == [200, 200, 200, 404] * 3
    assert [body.count(b"\n") for _, body in answers[::2]] == [
        2 + gateway.large.files,
        2 + gateway.plain.files,
    ] * 3


class _Shared:
    """A socket for one answer of many on the same stream."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream

    def makefile(self, mode: str) -> BufferedReader:
        return cast("BufferedReader", _Unclosed(self._stream))


class _Unclosed:
    def __init__(self, stream: BufferedReader) -> None:
        self.readline, self.read, self.readinto = stream.readline, stream.read, stream.readinto

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _next_answer(stream: BufferedReader) -> tuple[int, bytes]:
    response = http.client.HTTPResponse(_Shared(stream))  # type: ignore[arg-type]  # all that it uses
    response.begin()
    return response.status, response.read()


@pytest.mark.parametrize("accepted", ACCEPTED)
def test_an_answer_that_is_cut_off_takes_no_other_connection_with_it(accepted: str) -> None:
    with fakes() as running, connected(running.gateway) as other:
        whole = 2 + running.gateway.large.files
        for _ in range(3):
            assert len(query(other, running.gateway, accepted)) == whole
            running.services.snapshot.fail_after = running.services.snapshot.pages + 1
            with connected(running.gateway) as broken, pytest.raises((http.client.IncompleteRead, OSError)):
                query(broken, running.gateway, accepted)
            running.services.snapshot.fail_after = None
        assert len(query(other, running.gateway, accepted)) == whole
        assert len(set(running.peers)) == 1 + 3
