"""The API gateway as it is shipped in ``deploy``, before edges on loopback."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.certificates import Authority
from tests.http import Answer
from tests.repository import ROOT
from tests.stores.process import ServerProcess

PREFIX = "/delta-sharing"
_PATIENCE = 60


@dataclass(frozen=True, slots=True)
class EdgeAddress:
    """Where an edge is on loopback, and where it says whether it is ready."""

    port: int
    health_port: int


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a front listens: for recipients, for who asks after its health, and for who runs it."""

    recipients: int
    health: int
    admin: int


@dataclass(frozen=True, slots=True)
class Front:
    """A running API gateway."""

    ports: Ports
    directory: Path
    authority: Authority
    server: ServerProcess

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports.recipients}"

    @property
    def base_url(self) -> str:
        return self.url + PREFIX

    def tls(self) -> ssl.SSLContext:
        """Return what a client needs to believe it."""
        return ssl.create_default_context(cafile=str(self.authority.ca))

    def connect(self, source: str = "127.0.0.1") -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1",
            self.ports.recipients,
            context=self.tls(),
            timeout=_PATIENCE,
            source_address=(source, 0),
        )

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        source: str = "127.0.0.1",
    ) -> Answer:
        """Make one request on a connection of its own, for a path as it is to be sent."""
        connection = self.connect(source)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, fields, response.read())
        finally:
            connection.close()

    def access_log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.server.log().splitlines() if line.startswith("{")]


class StartFront(Protocol):
    """Starts a front for edges; ``changes`` are texts of the shipped files, and what they become."""

    def __call__(
        self,
        directory: Path,
        ports: Ports,
        edges: Sequence[EdgeAddress],
        authority: Authority,
        *,
        changes: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[Front]: ...


def place(shipped: str, directory: Path, authority: Authority, changes: Mapping[str, str]) -> None:
    """Copy the files of ``deploy/NAME``, changed, and a certificate beside them."""
    texts = {file.name: file.read_text() for file in sorted((ROOT / "deploy" / shipped).iterdir())}
    for old, new in changes.items():
        assert any(old in text for text in texts.values()), f"deploy/{shipped} does not say {old!r}"
        texts = {name: text.replace(old, new) for name, text in texts.items()}
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (directory / name).write_text(text)
    put_certificate(directory, authority, "server")


def put_certificate(directory: Path, authority: Authority, name: str) -> None:
    """Move a certificate into place, as whoever renews it does."""
    issued, tls = authority.issue(name), directory / "tls"
    tls.mkdir(exist_ok=True)
    for file, place_ in ((issued.key, tls / "tls.key"), (issued.certificate, tls / "tls.crt")):
        fresh = place_.with_suffix(".new")
        shutil.copy(file, fresh)
        fresh.replace(place_)
