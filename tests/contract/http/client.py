"""A client that sends what it is told, and shows what it gets."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.contract.http.facts import Gateway, TableFacts

_PATIENCE = 60


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.decode().splitlines()]

    def streamed(self) -> list[Any]:
        """Return the lines of an answer that is one."""
        assert self.status == 200, self.body
        return self.lines()

    def message(self) -> str:
        """Return what a refusal says, having checked that trying again is not suggested."""
        assert self.error() in {(400, "INVALID_PARAMETER_VALUE"), (400, "UNSUPPORTED_OPERATION")}
        return str(self.json()["message"])

    def error(self) -> tuple[int, str]:
        """Return the status and the code, having checked that the body is what every error's is."""
        assert self.headers["Content-Type"] == "application/json; charset=utf-8"
        body = self.json()
        assert set(body) == {"errorCode", "message"}
        assert body["message"]
        return self.status, body["errorCode"]


@dataclass(frozen=True)
class Client:
    gateway: Gateway

    def get(self, path: str, headers: Mapping[str, str] | None = None, token: str | None = None) -> Answer:
        return self.request("GET", path, headers, token=token)

    def post(
        self,
        path: str,
        body: bytes | dict[str, Any] = b"{}",
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        return self.request(
            "POST", path, {"Content-Type": "application/json", **(headers or {})}, data, token
        )

    def query(
        self, table: TableFacts, body: Mapping[str, Any] | None = None, capabilities: str = ""
    ) -> Answer:
        """Ask for the files of a table."""
        return self.post(f"{table.path}/query", dict(body or {}), _capable(capabilities))

    def changes(self, table: TableFacts, capabilities: str = "", **query: Any) -> Answer:
        """Ask for the changes of a table."""
        return self.get(f"{table.path}/changes?{urlencode(query)}", _capable(capabilities))

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        token: str | None = None,
    ) -> Answer:
        """Ask as the gateway's recipient, or with another token; an empty one sends none."""
        token = self.gateway.token if token is None else token
        fields = {"Authorization": f"Bearer {token}"} if token else {}
        return fetch(method, self.gateway.url + path, fields | dict(headers or {}), body)

    def open(self) -> socket.socket:
        """Return a bare connection."""
        parts = urlsplit(self.gateway.url)
        return socket.create_connection((parts.hostname, parts.port), _PATIENCE)

    def raw(self, data: bytes) -> bytes:
        """Send bytes as they are, and return all that comes back until the gateway closes."""
        with self.open() as connection:
            connection.sendall(data)
            return receive(connection)


def _capable(capabilities: str) -> dict[str, str]:
    return {"delta-sharing-capabilities": capabilities} if capabilities else {}


def fetch(method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
    parts = urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_PATIENCE)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, dict(headers))
        response = connection.getresponse()
        return Answer(status=response.status, headers=response.headers, body=response.read())
    finally:
        connection.close()


def receive(connection: socket.socket) -> bytes:
    """Return everything up to the end of the connection, or to its reset."""
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data
