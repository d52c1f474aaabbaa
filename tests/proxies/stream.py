"""One answer under way, read line by line as it comes."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.compressed import Reader

_PATIENCE = 60
_PIECE = 64 * 1024


class Refused(Exception):
    """An answer of another status, and no stream."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}: {body!r}")
        self.status = status


class Stream:
    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.connection = connection
        self._response = response
        coding = response.headers.get("Content-Encoding")
        self._reader = None if coding is None else Reader(coding)
        self.lines: list[bytes] = []
        self._rest = b""

    def read_lines(self, count: int) -> None:
        """Read until there are so many lines in all."""
        while len(self.lines) < count:
            assert self._read(), "the answer ended before"

    def read_to_end(self) -> None:
        """Read what there is; raise if the connection or the compressed stream breaks off before its end."""
        while self._read():
            pass
        assert self._reader is None or self._reader.is_whole
        assert not self._rest, "the answer ended within a line"

    def _read(self) -> bool:
        piece = self._response.read1(_PIECE)
        self._rest += piece if self._reader is None else self._reader.read(piece)
        *found, self._rest = self._rest.split(b"\n")
        self.lines += found
        return bool(piece)


@contextmanager
def streaming(
    url: str, headers: Mapping[str, str], *, receive_buffer: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[Stream]:
    """Ask for an answer, and give it when its head has come; raise ``Refused`` if it is no stream."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(_PATIENCE)
    sock.connect((parts.hostname, parts.port))
    connection.sock = sock = sock if tls is None else tls.wrap_socket(sock, server_hostname=parts.hostname)
    try:
        connection.request("POST", parts.path, b"{}", dict(headers))
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise Refused(response.status, response.read())
        yield Stream(connection, response)
    finally:
        connection.close()
        sock.close()
