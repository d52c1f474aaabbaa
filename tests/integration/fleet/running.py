"""A whole fleet on one machine: two of each service with mutual TLS, Envoy before and Redis behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aiohttp import web

from tests.deployments import free_port
from tests.doubles.server import serving
from tests.doubles.steerable_sts import SteerableSts
from tests.integration.fleet.front import edges_in_use, running_front
from tests.integration.fleet.lake import Lake, new_lake
from tests.integration.fleet.load import PATIENCE, Load, under_load
from tests.integration.fleet.replicas import ALL, EDGE, Replica, Replicas, plan_replicas, side_by_side, until
from tests.proxies.front import PREFIX, Front
from tests.stores.redis import Server, running_server, valkey_program

# Modest: two cores carry the fleet, the clients and whatever else runs beside them.
RATE = 25.0


class RedisSeat:
    """A port with a Redis on it, or without."""

    def __init__(self, directory: Path) -> None:
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
            seated = running_server(valkey_program(), self._directory, port=self.port)
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

    async def heal(self) -> None:
        """Start what does not run, and wait until Envoy reaches each edge, and each edge all services."""
        self.redis.start()
        await self.replicas.start(self.replicas.every())
        edges = self.of(EDGE)
        for edge in edges:
            await until(partial(_is_whole, edge), f"{edge.name} misses a service")
        await until(lambda: edges_in_use(self.front) == len(edges), "Envoy misses an edge")

    def loaded(self, *, rate: float = RATE, patience: float = PATIENCE) -> AbstractAsyncContextManager[Load]:
        tls = self.front.tls()
        return under_load(self.front.base_url, self.lake, rate=rate, patience=patience, tls=tls)


@contextmanager
def planned_fleet(directory: Path) -> Iterator[Fleet]:
    """Give a fleet with Envoy and Redis, none of whose own processes run yet."""
    port = free_port()
    with ExitStack() as stack:
        lake = new_lake(directory / "lake")
        sts = stack.enter_context(_serving_sts())
        redis = RedisSeat(directory / "redis")
        stack.callback(redis.kill)
        settings = lake.settings(sts.endpoint) | {
            "publicUrl": f"https://127.0.0.1:{port}{PREFIX}",
            # Two cores carry it all: a reply may wait for its turn.
            "cache": {"redis": {"url": redis.url, "timeout": "500ms"}},
        }
        replicas = plan_replicas(directory, settings, {service: side_by_side(2) for service in ALL})
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
