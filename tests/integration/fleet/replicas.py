"""The processes of a fleet: so many of each service, each to be started, stopped and killed by itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.certificates import new_authority
from tests.deployments import (
    SERVICES,
    ServerFiles,
    ServerProcess,
    Settings,
    is_ready,
    launch,
    split_keys,
    tls_files,
    write_files,
    write_yaml,
)
from tests.integration.fleet.journal import FILE, JournalReader
from tests.integration.fleet.sockets import ports_towards
from tests.ports import free_port
from tests.waiting import eventually_async

EDGE = "edge"
ALL = (EDGE, *SERVICES)
_DEADLINE = 240
_JOURNALED_SERVER = "tests.integration.fleet.journaled_server"


@dataclass(eq=False)
class Replica:
    """One process of a service, which runs or does not."""

    service: str
    name: str
    files: ServerFiles
    # Where it serves: REST for an edge, gRPC for the others.
    address: str
    server: ServerProcess | None = None

    @property
    def runs(self) -> bool:
        return self.server is not None and self.server.process.poll() is None

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def operations_port(self) -> int:
        return int(self.files.metrics_url.rpartition(":")[2])

    def start(self) -> None:
        assert not self.runs
        self.server = launch(self.name, self.files, "gateway" if self.service == EDGE else _JOURNALED_SERVER)

    def stop(self) -> None:
        """Ask it to stop, and wait until it has; anything but a clean end is a failure."""
        assert self.server is not None
        status = self.server.stop()
        assert status == 0, f"{self.name} ended with {status}\n{self.server.log()[-4000:]}"

    def kill(self) -> None:
        assert self.server is not None
        self.server.stop(signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop it in the middle of what it does; its connections stay, and nobody answers on them."""
        os.kill(self._pid, signal.SIGSTOP)
        try:
            # Not before all of its threads have stopped.
            os.waitid(os.P_PID, self._pid, os.WSTOPPED)
            yield
        finally:
            if self.runs:
                os.kill(self._pid, signal.SIGCONT)

    def journal(self) -> JournalReader:
        """Return what a service has in hand, since it was last started."""
        return JournalReader(self.files.config_file.with_name(FILE))

    def is_used_by(self, edge: Replica) -> bool:
        """Tell whether an edge has a connection on which it is told whether this service serves."""
        watching = {int(peer.rpartition(":")[2]) for peer in self.journal().watchers()}
        return not watching.isdisjoint(ports_towards(edge._pid, self.address))

    def is_ready(self) -> bool:
        if not self.runs or self.server is None:
            raise RuntimeError(f"{self.name} has ended\n{self.server.log() if self.server else ''}")
        return is_ready(self.server)

    def readiness(self) -> dict[str, Any]:
        """Return what it says of the services that it needs."""
        try:
            with urllib.request.urlopen(f"{self.files.metrics_url}/readyz", timeout=60) as response:
                said: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as exc:
            with exc:
                said = json.load(exc)
        return said

    def change(self, **settings: Any) -> Settings:
        """Give it other settings for its next start, and return those it had."""
        known: Settings = yaml.safe_load(self.files.config_file.read_text())
        write_yaml(self.files.config_file, known | settings)
        return known

    @property
    def _pid(self) -> int:
        assert self.server is not None
        return self.server.process.pid


@dataclass
class Replicas:
    """All processes of a fleet, by their services."""

    of: Mapping[str, Sequence[Replica]] = field(default_factory=dict)

    def every(self, services: Iterable[str] = ALL) -> list[Replica]:
        return [replica for service in services for replica in self.of[service]]

    async def start(self, replicas: Iterable[Replica]) -> None:
        """Start what does not run, all at once, and wait until each says that it is ready."""
        started = [replica for replica in replicas if not replica.runs]
        for replica in started:
            replica.start()
        await self.ready(started)

    async def ready(self, replicas: Iterable[Replica]) -> None:
        for replica in replicas:
            await until(replica.is_ready, f"{replica.name} is ready")

    async def stop(self, replicas: Iterable[Replica]) -> None:
        """Stop all at once."""
        await asyncio.gather(*(asyncio.to_thread(replica.stop) for replica in replicas if replica.runs))

    def kill(self) -> None:
        for replica in self.every():
            if replica.runs:
                replica.kill()

    async def restart(self, replica: Replica) -> None:
        await asyncio.to_thread(replica.stop)
        await self.start([replica])


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the replicas of a service listen, and how the edges find them."""

    listen: Sequence[str]
    target: str | Sequence[str]
    # The name that the edges know them by, if any.
    host: str = ""


def side_by_side(count: int) -> Places:
    """Return so many ports of one address, all of which are known from the start."""
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(count)]
    return Places(listen=addresses, target=addresses)


def behind_a_name(count: int, host: str, name_server: int) -> Places:
    """Return one port of so many addresses, which the edges ask a name server for, as in Kubernetes."""
    port = free_port()
    listen = [f"127.0.0.{number}:{port}" for number in range(1, count + 1)]
    return Places(listen=listen, target=f"dns://127.0.0.1:{name_server}/{host}:{port}", host=host)


def plan_replicas(directory: Path, settings: Settings, places: Mapping[str, Places]) -> Replicas:
    """Write the files of all processes: mutual TLS between them, and for each only the keys that it needs."""
    authority, keys = new_authority(directory / "pki"), split_keys()
    common = settings | {
        "principals": [{"name": EDGE, "certificate": "spiffe://sluice.test/edge", "permissions": [EDGE]}]
    }
    targets = {service: places[service].target for service in SERVICES}

    def plan(service: str, number: int, address: str) -> Replica:
        own = _listening(service, address, targets) | {"keys": {"current": keys[service]}}
        own["services"]["tls"] = tls_files(authority, service, *filter(None, [places[service].host]))
        name = f"{service}-{number}"
        return Replica(service, name, write_files(directory / name, common | own), address)

    return Replicas(
        {
            service: [plan(service, number, address) for number, address in enumerate(places[service].listen)]
            for service in ALL
        }
    )


async def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait for a condition that is evaluated in a thread, so that the load goes on meanwhile."""
    await eventually_async(partial(asyncio.to_thread, is_so), what, seconds=_DEADLINE, pause=0.05)


def _listening(service: str, address: str, targets: Mapping[str, str | Sequence[str]]) -> Settings:
    if service == EDGE:
        port = int(address.rpartition(":")[2])
        # Envoy asks every two seconds whether an edge is ready.
        return {"port": port, "drain": "5s", "services": {"run": [EDGE], "addresses": dict(targets)}}
    return {"services": {"run": [service], "listen": address}}
