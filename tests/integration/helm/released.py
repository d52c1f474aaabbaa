"""The processes of a rendered chart on this machine: its files and variables, at ports of loopback."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.certificates import Authority, new_authority
from tests.http import Answer, request
from tests.integration.helm.chart import Object, Rendered, container, env_of
from tests.integration.helm.pod_files import PodFiles, Secrets, new_keys
from tests.ports import free_ports
from tests.stores.process import ServerProcess, running

# What test certificates call the holder; a chart of this domain calls it the same.
TRUST_DOMAIN = "sluice.test"
_ADDRESS = "SLUICE_SERVICES_ADDRESSES_"

Ports = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Process:
    """One running process of the chart."""

    deployment: Object
    ports: Ports
    server: ServerProcess

    def probe(self, name: str) -> Answer:
        """Ask what the kubelet would ask for a probe."""
        asked = container(self.deployment)[name]["httpGet"]
        return request(f"http://127.0.0.1:{self.ports[asked['port']]}{asked['path']}")

    def metrics(self) -> str:
        return request(f"http://127.0.0.1:{self.ports['metrics']}/metrics").body.decode()


@contextmanager
def released(rendered: Rendered, directory: Path, http_port: int) -> Iterator[dict[str, Process]]:
    """Run every process of a chart until the block is left."""
    ports = {name: dict(zip(("grpc", "metrics"), free_ports(2), strict=True)) for name in rendered.processes}
    for name, process in rendered.processes.items():
        if "SLUICE_PORT" in env_of(process):
            ports[name]["http"] = http_port
    given = _secrets(rendered, directory)
    with ExitStack() as stack:
        # Edges last: they are ready when they reach the others.
        names = sorted(rendered.processes, key=lambda name: "http" in ports[name])
        yield {
            name: stack.enter_context(_running(name, rendered, directory / name, ports, given))
            for name in names
        }


@contextmanager
def _running(
    name: str, rendered: Rendered, directory: Path, ports: Mapping[str, Ports], given: Secrets
) -> Iterator[Process]:
    deployment = rendered.processes[name]
    files = PodFiles(directory, deployment, rendered, given)
    env = {key: _moved(key, value, ports, name) for key, value in files.env.items()}
    own = ports[name]
    probe = container(deployment)["readinessProbe"]["httpGet"]

    def is_ready() -> bool:
        try:
            return request(f"http://127.0.0.1:{own[probe['port']]}{probe['path']}").status == 200
        except OSError:
            return False

    command = [sys.executable, "-m", "gateway", "serve", "--config", str(files.config_file)]
    with running(command, log_file=directory / "log", ready=is_ready, env=env) as server:
        yield Process(deployment, own, server)


def _moved(key: str, value: str, ports: Mapping[str, Ports], name: str) -> str:
    """Return a variable with the addresses of this machine."""
    if key.startswith(_ADDRESS):
        called = value.removeprefix("dns:///").split(".")[0].removeprefix("sluice-")
        return f"127.0.0.1:{ports[called]['grpc']}"
    moved = {
        "SLUICE_HOST": "127.0.0.1",
        "SLUICE_PORT": str(ports[name].get("http", "")),
        "SLUICE_SERVICES_LISTEN": f"127.0.0.1:{ports[name]['grpc']}",
        "SLUICE_METRICS_LISTEN": f"127.0.0.1:{ports[name]['metrics']}",
    }
    return moved.get(key, value)


def _secrets(rendered: Rendered, directory: Path) -> Secrets:
    """Return the Secrets that the chart names: keys, and a certificate for each account."""
    authority = new_authority(directory / "pki")
    (authority.directory / "ns" / "sluice" / "sa").mkdir(parents=True)
    made: dict[str, Mapping[str, str]] = defaultdict(dict)
    made["sluice-keys"] = new_keys()
    for name in rendered.processes:
        made[f"sluice-{name}-tls"] = _certificate(authority, f"ns/sluice/sa/sluice-{name}")
    return made


def _certificate(authority: Authority, name: str) -> Mapping[str, str]:
    issued = authority.issue(name)
    files = {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": issued.ca}
    return {entry: Path(file).read_text() for entry, file in files.items()}
