"""The servers that a benchmark compares, and how one is measured."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import bare
from bench.load import Load, measure
from tests.deployments import Deployment
from tests.ports import free_port

PREFIX = "/delta-sharing"


@dataclass(slots=True, kw_only=True)
class Peer:
    """A server under load: where it is, and the processes whose time it takes."""

    name: str
    origin: str
    pids: list[int]
    rates: dict[str, list[float]] = field(default_factory=dict)
    latencies: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)


def measure_peer(peer: Peer, operation: str, load: Load) -> None:
    """Put a load on a peer, and keep what came of it."""
    before = cpu_seconds(peer.pids)
    outcome = measure(load)
    served = outcome.requests_per_second * (load.seconds + load.warm_up)
    peer.rates.setdefault(operation, []).append(outcome.requests_per_second)
    peer.latencies.setdefault(operation, []).append(outcome.p99_ms)
    peer.cpu.setdefault(operation, []).append((cpu_seconds(peer.pids) - before) / served * 1e6)


def cpu_seconds(pids: list[int]) -> float:
    """Return the processor time that the processes have used; 0 where the system does not tell."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def gateway_peer(name: str, deployment: Deployment) -> Peer:
    pids = [server.process.pid for server in deployment.processes.values()]
    return Peer(name=name, origin=origin_of(deployment), pids=pids)


def origin_of(deployment: Deployment) -> str:
    return deployment.base_url.removesuffix(PREFIX)


@contextmanager
def bare_peer(name: str, answers: list[bare.Answer], *, with_uvloop: bool) -> Iterator[Peer]:
    port = free_port()
    command = bare.command(port, with_uvloop=with_uvloop)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(bare.to_json(answers))
        process.stdin.close()
        try:
            assert process.stdout.readline() == "ready\n"
            yield Peer(name=name, origin=f"http://127.0.0.1:{port}", pids=[process.pid])
        finally:
            process.terminate()
