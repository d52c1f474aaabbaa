"""Says whether a bearer token is a JWT of the issuer, as the service does that nginx asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt

from tests.deployments import free_port


@contextmanager
def verifying(key: Any, issuer: str, audience: str) -> Iterator[int]:
    """Give the port at which tokens are verified."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200 if self._is_valid() else 401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

        def _is_valid(self) -> bool:
            _, _, token = self.headers.get("Authorization", "").partition(" ")
            try:
                jwt.decode(token, key, ["ES256"], issuer=issuer, audience=audience)
            except jwt.InvalidTokenError:
                return False
            return True

    port = free_port()
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
