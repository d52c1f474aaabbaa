"""Says whether a bearer token is a JWT of the issuer, as the service does that nginx asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt

from tests.ports import free_port


@dataclass
class Verifier:
    """Where tokens are verified, by which keys, and all that was told with them."""

    port: int
    keys: list[Any]
    # Names in lower case.
    told: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def verifying(key: Any, issuer: str, audience: str) -> Iterator[Verifier]:
    verifier = Verifier(free_port(), [key])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            verifier.told.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200 if any(map(self._is_valid, verifier.keys)) else 401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

        def _is_valid(self, key: Any) -> bool:
            _, _, token = self.headers.get("Authorization", "").partition(" ")
            try:
                jwt.decode(token, key, ["ES256"], issuer=issuer, audience=audience)
            except jwt.InvalidTokenError:
                return False
            return True

    server = ThreadingHTTPServer(("127.0.0.1", verifier.port), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield verifier
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
