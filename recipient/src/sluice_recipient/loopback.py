"""A credentials endpoint on loopback, of the kind that AWS clients ask again before a session ends.

It wants a token of its own. Each table has a path of its own, so several tables of one bucket are read at the
same time, each with its own credential. Run as a program it serves one parent process, and ends with it:
orders come as JSON on standard input, one on each line, and each is answered with a line.
"""

from __future__ import annotations

import functools
import hmac
import json
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TextIO

from sluice_recipient.address import parse_name
from sluice_recipient.aws import container_answer
from sluice_recipient.client import GatewayClient
from sluice_recipient.credential import Credential
from sluice_recipient.errors import RecipientError
from sluice_recipient.profile import parse_profile
from sluice_recipient.refreshing import Refreshing
from sluice_recipient.transport import UrllibTransport

Source = Callable[[], Credential]


class CredentialEndpoint:
    """Answers for each path with what its source gives at that moment."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._sources: dict[str, Source] = {}

    def register(self, path: str, source: Source) -> None:
        self._sources[path] = source

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, Any]]:
        """Return status and content for a request."""
        if not hmac.compare_digest(authorization.encode(), self._token.encode()):
            return 401, {"code": "Unauthorized", "message": "this endpoint is for one process only"}
        source = self._sources.get(path)
        if source is None:
            return 404, {"code": "NotFound", "message": "no such table"}
        try:
            return 200, container_answer(source())
        except RecipientError as exc:
            return 503, {"code": "Unavailable", "message": str(exc)}


def main(orders: TextIO = sys.stdin, answers: TextIO = sys.stdout) -> None:
    """Serve until the orders end."""
    endpoint = CredentialEndpoint(json.loads(orders.readline())["token"])
    server = _Server(("127.0.0.1", 0), functools.partial(_Handler, endpoint))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _answer(answers, {"port": server.server_address[1]})
    for line in orders:
        order = json.loads(line)
        endpoint.register(order["path"], source_of(order))
        _answer(answers, {"path": order["path"]})


def source_of(order: Mapping[str, Any]) -> Source:
    """Return what renews the credential of the table that an order names."""
    client = GatewayClient(parse_profile(order["profile"]), UrllibTransport())
    return Refreshing(functools.partial(client.credential, parse_name(order["table"]))).current


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, endpoint: CredentialEndpoint, *arguments: Any) -> None:
        self._endpoint = endpoint
        super().__init__(*arguments)

    def do_GET(self) -> None:
        status, content = self._endpoint.answer(self.path, self.headers.get("Authorization", ""))
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Stay silent: the terminal is the parent's."""


def _answer(answers: TextIO, content: Mapping[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
