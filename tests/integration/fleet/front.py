"""Envoy before the edges of a fleet."""

from __future__ import annotations

import secrets
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template

from tests.integration.fleet.replicas import Replica
from tests.proxies.envoy import envoy_program
from tests.stores.process import free_ports, listens, running

_CONFIGURATION = Path(__file__).with_name("envoy.yaml")
_ENDPOINT = (
    "              - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}},"
    " health_check_config: {{port_value: {operations_port}}}}}"
)


@dataclass(frozen=True, slots=True)
class Front:
    """A running Envoy."""

    admin: int

    def healthy(self) -> int:
        """Return how many edges it sends requests to."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/clusters", timeout=10) as response:
            return int(response.read().count(b"::health_flags::healthy"))


@contextmanager
def running_front(directory: Path, port: int, edges: Sequence[Replica]) -> Iterator[Front]:
    """Run Envoy on a port that recipients know, before edges that need not be there yet."""
    directory.mkdir(parents=True)
    (admin,) = free_ports(1)
    endpoints = [_ENDPOINT.format(port=edge.port, operations_port=edge.operations_port) for edge in edges]
    file = directory / "envoy.yaml"
    values = {"admin": admin, "front": port, "edges": "\n".join(endpoints)}
    file.write_text(Template(_CONFIGURATION.read_text()).substitute(values))
    # Its shared memory is named by this number: two of the same do not start.
    base = secrets.randbelow(2**31)
    with running(
        [envoy_program(), "-c", file, "--concurrency", "1", "--base-id", str(base), "-l", "warning"],
        log_file=directory / "envoy.log",
        ready=lambda: listens(port),
    ):
        yield Front(admin)
