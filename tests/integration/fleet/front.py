"""Envoy as it is shipped, before the edges of a fleet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.certificates import new_authority
from tests.http import request
from tests.integration.fleet.replicas import Replica
from tests.ports import free_port
from tests.proxies.front import EdgeAddress, Front, Ports
from tests.proxies.front_envoy import place_envoy, running_envoy
from tests.stores.process import listens

_LISTENER: Final = "      listener_filters:\n"
_CLUSTER: Final = "      lb_policy: LEAST_REQUEST\n"
# All that differs: loopback takes megabytes at once, and what a slow recipient has not taken is to be still
# in the hands of an edge.
_SMALL_BUFFERS: Final = {
    _LISTENER: "      socket_options: [{level: 1, name: 7, int_value: 65536, description: SO_SNDBUF}]\n"
    + _LISTENER,
    _CLUSTER: "      upstream_bind_config:\n"
    "        source_address: {address: 127.0.0.1, port_value: 0}\n"
    "        socket_options: [{level: 1, name: 8, int_value: 65536, description: SO_RCVBUF}]\n" + _CLUSTER,
}


@contextmanager
def running_front(directory: Path, port: int, edges: Sequence[Replica]) -> Iterator[Front]:
    """Run it on a port that recipients know, before edges that need not be there yet."""
    ports = Ports(recipients=port, health=free_port(), admin=free_port())
    addresses = [EdgeAddress(edge.port, edge.operations_port) for edge in edges]
    authority = new_authority(directory / "pki")
    place_envoy(directory, ports, addresses, authority, _SMALL_BUFFERS)
    with running_envoy(directory, lambda: listens(port)) as server:
        yield Front(ports, directory, authority, server)


def edges_in_use(front: Front) -> int:
    """Return how many edges it sends requests to."""
    return _clusters(front).count("::health_flags::healthy")


def requests_at(front: Front, edge: Replica) -> int:
    """Return how many requests it waits for an edge to answer to the end."""
    (found,) = re.findall(rf"::{re.escape(edge.address)}::rq_active::(\d+)", _clusters(front))
    return int(found)


def health_checks(front: Front) -> int:
    """Return how many checks of edges it has begun."""
    stats = request(f"http://127.0.0.1:{front.ports.admin}/stats?filter=health_check.attempt").body.decode()
    return int(stats.rpartition(":")[2])


def _clusters(front: Front) -> str:
    return request(f"http://127.0.0.1:{front.ports.admin}/clusters").body.decode()
