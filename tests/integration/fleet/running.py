"""A whole fleet on one machine: two of each service with mutual TLS, Envoy before and Redis behind them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.deployments import SERVICES
from tests.doubles.server import serving
from tests.doubles.steerable_sts import SteerableSts
from tests.integration.fleet.front import edges_in_use, running_front
from tests.integration.fleet.lake import Lake
from tests.integration.fleet.load import MIX, PATIENCE, Load, under_load
from tests.integration.fleet.replicas import (
    ALL,
    EDGE,
    Places,
    Replica,
    Replicas,
    plan_replicas,
    side_by_side,
    until,
)
from tests.ports import free_port
from tests.proxies.front import PREFIX, Front
from tests.stores.redis import Server, running_server, valkey_program

# Modest: two cores carry the fleet, the clients and whatever else runs beside them.
RATE = 25.0


class RedisSeat:
    """A port with a Redis on it, or without."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._running = ExitStack()
        self.server: Server | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start one with nothing in it, unless there is one."""
        if self.server is None:
            seated = running_server(self._program, self._directory, port=self.port)
            self.server = self._running.enter_context(seated)

    def kill(self) -> None:
        self._running.close()
        self.server = None


@dataclass
class Fleet:
    lake: Lake
    sts: SteerableSts
    redis: RedisSeat
    replicas: Replicas
    front: Front

    def of(self, service: str) -> Sequence[Replica]:
        return self.replicas.of[service]

    async def heal(self, without: Collection[Replica] = ()) -> None:
        """Start what does not run, and wait until Envoy uses each edge, and each edge every replica."""
        self.redis.start()
        wanted = [replica for replica in self.replicas.every() if replica not in without]
        await self.replicas.start(wanted)
        for edge in self.of(EDGE):
            await until(partial(_is_whole, edge), f"{edge.name} reaches every service")
        await self.found(wanted)

    async def found(self, replicas: Collection[Replica]) -> None:
        """Wait until these are in use by all that call them, and what they call is in use by them.

        That an edge is ready says of each service that one of its replicas answers, and no more.
        """
        edges = self.of(EDGE)
        for replica in replicas:
            if replica.service == EDGE:
                services = [other for other in self.replicas.every(SERVICES) if other.runs]
                pairs = [(replica, service) for service in services]
            else:
                pairs = [(edge, replica) for edge in edges]
            for edge, service in pairs:
                is_found = partial(service.is_used_by, edge)
                await until(is_found, f"{edge.name} uses {service.name}")
        await until(lambda: edges_in_use(self.front) == len(edges), "Envoy uses every edge")

    def loaded(
        self, *, rate: float = RATE, patience: float = PATIENCE, mix: Sequence[str] = MIX
    ) -> AbstractAsyncContextManager[Load]:
        tls = self.front.tls()
        return under_load(self.front.base_url, self.lake, rate=rate, patience=patience, mix=mix, tls=tls)


@contextmanager
def planned_fleet(
    directory: Path,
    lake: Lake,
    *,
    redis_program: Callable[[], Path] = valkey_program,
    places: Mapping[str, Places] | None = None,
    cache: Mapping[str, Any] | None = None,
) -> Iterator[Fleet]:
    """Give a fleet with Envoy and Redis, none of whose own processes run yet.

    It has two of each service, side by side, but for those that are given other places.
    """
    port = free_port()
    with ExitStack() as stack:
        sts = stack.enter_context(_serving_sts())
        redis = RedisSeat(redis_program(), directory / "redis")
        stack.callback(redis.kill)
        settings = lake.settings(sts.endpoint) | {
            "publicUrl": f"https://127.0.0.1:{port}{PREFIX}",
            # Two cores carry it all: a reply may take long.
            "cache": {"redis": {"url": redis.url, "timeout": "5s"}, **(cache or {})},
        }
        sides = {service: side_by_side(2) for service in ALL}
        replicas = plan_replicas(directory, settings, sides | dict(places or {}))
        stack.callback(replicas.kill)
        front = stack.enter_context(running_front(directory / "front", port, replicas.of[EDGE]))
        yield Fleet(lake, sts, redis, replicas, front)


def _is_whole(edge: Replica) -> bool:
    return bool(edge.readiness()["status"] == "ok")


@contextmanager
def _serving_sts() -> Iterator[SteerableSts]:
    sts = SteerableSts()
    app = web.Application()
    app.router.add_post("/", sts.handle)
    with serving(app) as origin:
        sts.endpoint = origin
        yield sts
