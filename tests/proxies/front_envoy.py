"""Envoy with the configuration of ``deploy/envoy``."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import yaml

from tests.certificates import Authority
from tests.http import request
from tests.proxies.envoy import envoy_program
from tests.proxies.front import EdgeAddress, Front, Ports, place
from tests.stores.process import ServerProcess, listens, running

# Its access log is otherwise up to ten seconds late.
_FLUSH = ("--file-flush-interval-msec", "100")


@contextmanager
def envoy_front(
    directory: Path,
    ports: Ports,
    edges: Sequence[EdgeAddress],
    authority: Authority,
    *,
    changes: Mapping[str, str] | None = None,
) -> Iterator[Front]:
    place_envoy(directory, ports, edges, authority, changes)
    with running_envoy(directory, lambda: listens(ports.recipients) and _is_healthy(ports)) as server:
        yield Front(ports, directory, authority, server)


def running_envoy(directory: Path, ready: Callable[[], bool]) -> AbstractContextManager[ServerProcess]:
    """Run it with the files that are in a directory."""
    return running(
        # Its shared memory is named by this number: two of the same do not start.
        [*envoy_command(directory), "--base-id", str(secrets.randbelow(2**31))],
        log_file=directory / "output",
        ready=ready,
    )


def envoy_command(directory: Path) -> list[str | Path]:
    return [envoy_program(), "-c", directory / "envoy.yaml", "--concurrency", "1", "-l", "warning", *_FLUSH]


def place_envoy(
    directory: Path,
    ports: Ports,
    edges: Sequence[EdgeAddress],
    authority: Authority,
    changes: Mapping[str, str] | None = None,
) -> None:
    """Write the shipped files with other paths, addresses and ports."""
    own = {
        "/etc/envoy": str(directory),
        "address: 0.0.0.0": "address: 127.0.0.1",
        "port_value: 8443": f"port_value: {ports.recipients}",
        "port_value: 8081": f"port_value: {ports.health}",
        "port_value: 9901": f"port_value: {ports.admin}",
    }
    place("envoy", directory, authority, own | dict(changes or {}))
    put_edges(directory, edges)


def put_edges(directory: Path, edges: Sequence[EdgeAddress]) -> None:
    """Move a file with other edges into place, as an operator does."""
    file = directory / "edges.yaml"
    document = yaml.safe_load(file.read_text())
    document["resources"][0]["endpoints"][0]["lb_endpoints"] = [
        {
            "endpoint": {
                "address": {"socket_address": {"address": "127.0.0.1", "port_value": edge.port}},
                "health_check_config": {"port_value": edge.health_port},
            }
        }
        for edge in edges
    ]
    fresh = file.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(document))
    fresh.replace(file)


def _is_healthy(ports: Ports) -> bool:
    return listens(ports.health) and request(f"http://127.0.0.1:{ports.health}/healthz").status == 200
