"""A plain HTTP client for tests that look at single bytes, status lines and times."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

FINAL_CHUNK = b"\r\n0\r\n\r\n"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    url: str, *, token: str = "", method: str = "GET", body: bytes | None = None, **headers: str
) -> Answer:
    """Make one request on a connection of its own."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(
            method, target, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        response = connection.getresponse()
        return Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        )
    finally:
        connection.close()


@contextmanager
def raw_query(base_url: str, table: str, token: str, capabilities: str = ""):
    """Send a query and yield the socket before anything of the answer was read."""
    parts = urlsplit(base_url)
    share, schema, name = table.split(".")
    extra = f"delta-sharing-capabilities: {capabilities}\r\n" if capabilities else ""
    head = (
        f"POST {parts.path}/shares/{share}/schemas/{schema}/tables/{name}/query HTTP/1.1\r\n"
        f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n{extra}"
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    sock = socket.socket()
    # Small, so that the server soon has to wait for the reader.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(60)
    sock.connect((parts.hostname, parts.port))
    try:
        sock.sendall(head.encode())
        yield sock
    finally:
        sock.close()


def unchunked(answer: bytes) -> bytes:
    """Return the body of an answer whose final chunk has arrived."""
    body, rest = bytearray(), answer.partition(b"\r\n\r\n")[2]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body += rest[:length]
        rest = rest[length + 2 :]
    return bytes(body)


def read_to_end(sock: socket.socket) -> bytes:
    """Read until the final chunk, or until the other side closes or resets."""
    pieces = bytearray()
    while not pieces.endswith(FINAL_CHUNK):
        try:
            piece = sock.recv(1 << 16)
        except ConnectionError:
            break
        if not piece:
            break
        pieces += piece
    return bytes(pieces)
