"""An edge that answers everything, keeps what it was asked byte for byte, and breaks when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

from tests.deployments import free_port
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
def recording_edge() -> Iterator[RecordingEdge]:
    port = free_port()
    server = _Server(("127.0.0.1", port), _Handler)
    server.edge = RecordingEdge(EdgeAddress(port, port))
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

    do_POST = do_HEAD = do_GET  # noqa: N815 -- the names that the base class looks for

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
