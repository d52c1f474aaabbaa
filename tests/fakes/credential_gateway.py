"""A sharing server with directory access only, which keeps a record of what it handed out."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gateway.ports import utcnow

# The answer of STS for a location, under the names that STS gives its fields.
Mint = Callable[[str], Mapping[str, Any]]
PREFIX = "/delta-sharing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """One credential that was handed out."""

    table: str
    by: str
    credentials: Mapping[str, Any] = field(repr=False)
    expires_at: datetime


@dataclass
class CredentialGateway:
    """Hands out what ``mint`` gives, anew each time; with ``life`` it says that it expires sooner."""

    mint: Mint
    # The location of each table, by ``share.schema.table``.
    tables: Mapping[str, str]
    token: str
    region: str
    endpoint: str
    life: timedelta | None = None
    base_url: str = ""
    issued: list[Issued] = field(default_factory=list)

    @property
    def profile(self) -> str:
        content = {"shareCredentialsVersion": 1, "endpoint": self.base_url, "bearerToken": self.token}
        return json.dumps(content)

    def container_url(self, table: str) -> str:
        """Return the address that AWS tools ask for a table's credentials."""
        share, schema, name = table.split(".")
        return f"{self.base_url}/shares/{share}/schemas/{schema}/tables/{name}/aws-credentials"

    def answer(self, path: str, authorization: str) -> tuple[int, object]:
        """Return status and content of the answer to a request."""
        if authorization != f"Bearer {self.token}":
            return 401, {"errorCode": "UNAUTHENTICATED", "message": "unknown token"}
        match path.removeprefix(PREFIX).strip("/").split("/"):
            case ["shares", share, "schemas", schema, "tables", name, what]:
                return self._answer_table(f"{share}.{schema}.{name}", what)
            case _:
                return 404, {"errorCode": "RESOURCE_DOES_NOT_EXIST", "message": "no such path"}

    def _answer_table(self, table: str, what: str) -> tuple[int, object]:
        location = self.tables.get(table)
        if location is None:
            return 404, {"errorCode": "RESOURCE_DOES_NOT_EXIST", "message": f"table {table} not found"}
        if what == "metadata":
            return 200, {"metaData": {"location": location, "accessModes": ["dir"]}}
        issued = self._issue(table, location, what)
        return 200, self._container(issued) if what == "aws-credentials" else self._sharing(issued, location)

    def _issue(self, table: str, location: str, what: str) -> Issued:
        credentials = self.mint(location)
        expires_at = credentials["Expiration"] if self.life is None else utcnow() + self.life
        issued = Issued(table=table, by=what, credentials=credentials, expires_at=expires_at)
        self.issued.append(issued)
        return issued

    def _sharing(self, issued: Issued, location: str) -> object:
        expires_at = int(issued.expires_at.timestamp() * 1000)
        content = {"location": location, **self.block(issued), "expirationTime": expires_at}
        return {"credentials": content}

    def block(self, issued: Issued) -> dict[str, object]:
        """Return the part of an answer that is the cloud's own."""
        keys = {
            "accessKeyId": issued.credentials["AccessKeyId"],
            "secretAccessKey": issued.credentials["SecretAccessKey"],
            "sessionToken": issued.credentials["SessionToken"],
            "region": self.region,
            "endpoint": self.endpoint,
        }
        return {"awsTempCredentials": keys}

    def _container(self, issued: Issued) -> object:
        return {
            "AccessKeyId": issued.credentials["AccessKeyId"],
            "SecretAccessKey": issued.credentials["SecretAccessKey"],
            "Token": issued.credentials["SessionToken"],
            "Expiration": f"{issued.expires_at:%Y-%m-%dT%H:%M:%SZ}",
        }


@contextmanager
def serving(gateway: CredentialGateway) -> Iterator[CredentialGateway]:
    """Serve it on loopback, in threads of this process, until the block is left."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, gateway))
    gateway.base_url = f"http://127.0.0.1:{server.server_address[1]}{PREFIX}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield gateway
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, gateway: CredentialGateway, *arguments: Any) -> None:
        self._gateway = gateway
        super().__init__(*arguments)

    def do_GET(self) -> None:
        status, content = self._gateway.answer(self.path, self.headers.get("Authorization", ""))
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Keep the test's output clean."""
