"""Azurite: Azure's Blob service for development, which knows no directories and no roles."""

from __future__ import annotations

import base64
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.config.schema import TlsConfig
from tests.installed import installed
from tests.ports import free_ports
from tests.stores.process import ServerProcess, listens, retried, running

ACCOUNT = "sluicetest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Azurite:
    """A running Blob service with one account; the account's name is the first segment of a path."""

    origin: str
    key: bytes = field(repr=False)
    account: str = ACCOUNT
    process: ServerProcess

    @property
    def endpoint(self) -> str:
        return f"{self.origin}/{self.account}"


@contextmanager
def running_azurite(directory: Path, tls: TlsConfig | None = None) -> Iterator[Azurite]:
    """Run a service that keeps all in memory; with a certificate it speaks https and takes bearer tokens."""
    program, node = installed("azurite"), shutil.which("node")
    if node is None:
        pytest.fail("Azurite needs `node` on the PATH", pytrace=False)
    with retried(lambda: _start([node, program], directory, tls)) as service:
        yield service


@contextmanager
def _start(command: list[str | Path], directory: Path, tls: TlsConfig | None) -> Iterator[Azurite]:
    data = directory / secrets.token_hex(4)
    data.mkdir(parents=True)
    key = secrets.token_bytes(64)
    (port,) = free_ports(1)
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence"]
    # An SDK may speak a version of the protocol that is newer than the program.
    quiet = ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    encrypted = ["--oauth", "basic", "--cert", tls.certificate, "--key", tls.key] if tls else []
    with running(
        [*command, *options, *quiet, *encrypted],
        log_file=data / "log",
        ready=lambda: listens(port),
        env={"AZURITE_ACCOUNTS": f"{ACCOUNT}:{base64.b64encode(key).decode()}"},
    ) as process:
        yield Azurite(origin=f"{'https' if tls else 'http'}://127.0.0.1:{port}", key=key, process=process)
