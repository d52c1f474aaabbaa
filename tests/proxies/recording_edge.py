"""An edge that answers everything, keeps what it was asked byte for byte, and breaks when it is told to."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

from gateway.config.schema import TlsConfig
from tests.ports import free_port
from tests.proxies.front import EdgeAddress

# Closes the connection instead of answering; or in the middle of its answer.
Fault = Literal["", "before the answer", "within the answer"]
ANSWER = b'{"items":[]}'


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    target: str
    # In the order and with the names in lower case; one that came twice is here twice.
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


@dataclass
class RecordingEdge:
    address: EdgeAddress
    asked: list[Asked] = field(default_factory=list)
    fault: Fault = ""
    is_ready: bool = True

    def reset(self) -> None:
        self.asked.clear()
        self.fault, self.is_ready = "", True


@contextmanager
def recording_edge(
    certificate: TlsConfig | None = None, health_port: int | None = None
) -> Iterator[RecordingEdge]:
    """Run one, which says itself that it is ready unless another does; over TLS if it has a certificate."""
    port = free_port()
    server = _Server(("127.0.0.1", port), _Handler)
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate.certificate, certificate.key)
        # In the connection's own thread: a client that says nothing must not hold up the next one.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.edge = RecordingEdge(EdgeAddress(port, port if health_port is None else health_port))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.edge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    edge: RecordingEdge

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet: a proxy that gives a connection up is nobody's fault."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        edge = self.server.edge
        if self.path == "/readyz":
            self._answer(200 if edge.is_ready else 503)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = tuple((name.lower(), value) for name, value in self.headers.items())
        edge.asked.append(Asked(self.command, self.path, headers, body))
        if edge.fault == "before the answer":
            self.close_connection = True
            return
        self._answer(200, declared=len(ANSWER) + (edge.fault == "within the answer"))

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815 -- the names that the base class looks for

    def log_message(self, *args: object) -> None:
        """Keep quiet."""

    def _answer(self, status: int, declared: int = len(ANSWER)) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(declared))
        if value := self.headers.get("X-Request-Id"):
            self.send_header("X-Request-Id", value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(ANSWER)
        self.close_connection = declared != len(ANSWER)
