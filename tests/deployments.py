"""The gateway in processes of its own: all in one, or five with mutual TLS between them."""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.config.schema import TlsConfig
from tests.certificates import Authority, new_authority
from tests.http import request
from tests.ports import free_port
from tests.waiting import START_SECONDS, eventually

SERVICES = ("catalog", "snapshot", "presign", "vending")
_STOP_TIMEOUT = 120

Settings = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """What a ``sluice serve`` is started from, as often as one likes."""

    config_file: Path
    log_file: Path
    metrics_url: str


@dataclass(eq=False)
class ServerProcess:
    """One ``sluice serve`` with the files it was started from."""

    name: str
    config_file: Path
    log_file: Path
    process: subprocess.Popen[bytes]
    metrics_url: str

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def restart(self) -> None:
        """Start the process again from its files, once it has ended; its log is overwritten."""
        assert self.process.poll() is not None, f"{self.name} still runs"
        files = ServerFiles(self.config_file, self.log_file, self.metrics_url)
        self.process = launch(self.name, files).process

    def metric(self, *parts: str) -> float:
        """Return the sum of all series whose lines have these parts."""
        lines = request(f"{self.metrics_url}/metrics").body.decode().splitlines()
        series = [line for line in lines if not line.startswith("#")]
        return sum(float(line.split()[-1]) for line in series if all(part in line for part in parts))

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")


@dataclass
class Deployment:
    """A running gateway."""

    base_url: str
    directory: Path
    processes: dict[str, ServerProcess] = field(default_factory=dict)
    authority: Authority | None = None

    @property
    def edge(self) -> ServerProcess:
        return self.processes["edge"]

    @property
    def catalog(self) -> ServerProcess:
        return self.processes.get("catalog", self.edge)

    def certificate(self, name: str) -> TlsConfig:
        """Return a certificate of the authority that the processes trust."""
        assert self.authority is not None
        return self.authority.issue(name)

    def rewrite(self, change: Mapping[str, Any]) -> None:
        """Put other top-level settings into the files of all processes, as an operator's editor would."""
        for server in self.processes.values():
            settings = yaml.safe_load(server.config_file.read_text()) | dict(change)
            write_yaml(server.config_file, settings)

    def revive(self) -> None:
        """Start again the processes that have ended, and wait until all are ready."""
        for server in self.processes.values():
            if server.process.poll() is not None:
                server.restart()
        _wait_until_ready(self)

    def logs(self) -> str:
        return "\n".join(f"== {name}\n{server.log()}" for name, server in self.processes.items())


@contextmanager
def all_in_one(directory: Path, settings: Settings, *, wait: bool = True) -> Iterator[Deployment]:
    """Run everything in one process, at the ports and under the public address of the settings, if any.

    Without ``wait``, the process may still be starting.
    """
    port = settings.get("port") or free_port()
    deployment = Deployment(base_url=f"http://127.0.0.1:{port}/delta-sharing", directory=directory)
    with ExitStack() as stack:
        own = {"publicUrl": deployment.base_url} | settings | {"port": port}
        _start(stack, deployment, "edge", own)
        if wait:
            _wait_until_ready(deployment)
        yield deployment


@contextmanager
def split(
    directory: Path, settings: Settings, replicas: int = 1, workers: int = 1, *, wait: bool = True
) -> Iterator[Deployment]:
    """Run five processes with mutual TLS between them, each with only the keys that it needs.

    Without ``wait``, the processes may still be starting.
    """
    port = free_port()
    authority = new_authority(directory / "pki")
    deployment = Deployment(
        base_url=f"http://127.0.0.1:{port}/delta-sharing", directory=directory, authority=authority
    )
    keys, shared = split_keys(), settings.get("services", {})
    addresses = {name: [f"127.0.0.1:{free_port()}" for _ in range(replicas)] for name in SERVICES}
    common = settings | {
        "port": port,
        "publicUrl": deployment.base_url,
        "principals": [
            {"name": "edge", "certificate": "spiffe://sluice.test/edge", "permissions": ["edge"]},
            *settings.get("principals", ()),
        ],
    }
    with ExitStack() as stack:
        for name in SERVICES:
            for number, address in enumerate(addresses[name]):
                services = shared | {"run": [name], "listen": address, "tls": tls_files(authority, name)}
                own = common | {"services": services, "keys": {"current": keys[name]}}
                _start(stack, deployment, name if number == 0 else f"{name}-{number}", own)
        services = shared | {"run": ["edge"], "addresses": addresses, "tls": tls_files(authority, "edge")}
        http = common.get("http", {}) | {"workers": workers}
        own = common | {"services": services, "keys": {"current": keys["edge"]}, "http": http}
        _start(stack, deployment, "edge", own)
        if wait:
            _wait_until_ready(deployment)
        yield deployment


def write_files(state: Path, settings: Settings) -> ServerFiles:
    """Write the configuration of a process that keeps its state in a directory of its own."""
    metrics = settings.get("metrics", {}).get("listen") or f"127.0.0.1:{free_port()}"
    state.mkdir(parents=True)
    config_file = state / "server.yaml"
    write_yaml(config_file, {"stateDir": str(state), "metrics": {"listen": metrics}, **settings})
    return ServerFiles(config_file, state / "log", f"http://{metrics}")


def launch(name: str, files: ServerFiles, module: str = "gateway") -> ServerProcess:
    """Start a process; what one before it has logged is overwritten."""
    with files.log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "serve", "--config", str(files.config_file)],
            stdout=log,
            stderr=log,
            env=_environment(),
        )
    return ServerProcess(name, files.config_file, files.log_file, process, files.metrics_url)


def is_ready(server: ServerProcess) -> bool:
    # Its own log speaks for it: what answers on the port could be another program.
    return '"serving ' in server.log() and _is_complete(f"{server.metrics_url}/readyz")


def _environment() -> dict[str, str]:
    # The limit on polars' threads is for the tests' own processes, not for the product.
    inherited = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"}
    # A tenth of a start is reading the authorities that the system trusts; none has signed for a test server.
    return {"SSL_CERT_FILE": os.devnull, **inherited, "PYTHONUNBUFFERED": "1"}


def _start(stack: ExitStack, deployment: Deployment, name: str, settings: Settings) -> None:
    server = launch(name, write_files(deployment.directory / name, settings))
    deployment.processes[name] = server
    stack.callback(server.stop)


def _wait_until_ready(deployment: Deployment) -> None:
    def is_up(server: ServerProcess) -> bool:
        assert server.process.poll() is None, f"{server.name} ended\n{deployment.logs()}"
        return is_ready(server)

    def description(server: ServerProcess) -> str:
        return f"{server.name} is ready\n{deployment.logs()}"

    for server in deployment.processes.values():
        eventually(partial(is_up, server), partial(description, server), seconds=START_SECONDS)


def _is_complete(url: str) -> bool:
    """True if a process is ready and reaches every service: an edge is also ready without one access mode."""
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return bool(json.load(response)["status"] == "ok")
    except OSError:
        return False


def write_yaml(file: Path, settings: Settings) -> None:
    # Moved into place, so that a watcher never reads half a file.
    fresh = file.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    fresh.replace(file)


def tls_files(authority: Authority, name: str, *hosts: str) -> dict[str, str]:
    tls: dict[str, str] = authority.issue(name, *hosts).model_dump()
    return tls


def split_keys() -> dict[str, dict[str, str]]:
    secret = {
        name: base64.b64encode(secrets.token_bytes(32)).decode()
        for name in ("listPage", "filePage", "refresh", "localUrl", "sealing")
    }
    private = Ed25519PrivateKey.generate()
    private_pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    public_pem = (
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )

    def pick(*names: str) -> dict[str, str]:
        return {name: secret[name] for name in names}

    return {
        "edge": pick("localUrl"),
        "catalog": pick("listPage") | {"grantPrivateKey": private_pem},
        "snapshot": pick("filePage", "refresh") | {"grantPublicKey": public_pem},
        "presign": pick("localUrl", "sealing") | {"grantPublicKey": public_pem},
        "vending": pick("sealing") | {"grantPublicKey": public_pem},
    }
