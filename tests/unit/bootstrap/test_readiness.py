from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry

from gateway.adapters.service_metrics import ServiceMetrics
from gateway.bootstrap.readiness import CheckTimes, Readiness, missing
from gateway.config.schema import ServiceName
from gateway.rpc.local import LocalChannel
from gateway.rpc.server import Health
from tests.cases import each_case
from tests.fakes.metrics import FakeRpcMetrics
from tests.waiting import eventually_async

SOON = timedelta(milliseconds=5)


@asynccontextmanager
async def watched(readiness: Readiness) -> AsyncIterator[None]:
    watching = asyncio.create_task(readiness.watch())
    try:
        yield
    finally:
        watching.cancel()


def serving_channel() -> tuple[Health, aio.Channel]:
    health, channel = Health(), LocalChannel(FakeRpcMetrics())
    health.register(channel.as_server())
    return health, channel.as_channel()


class Hanging(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # grpc_health has no types
    """Takes calls and answers none; or only every other one, as where one of two replicas does."""

    def __init__(self, *, answers_every_other: bool = False) -> None:
        self.calls = 0
        self._answers_every_other = answers_every_other

    async def Check(self, request: Any, context: Any) -> Any:
        self.calls += 1
        if self._answers_every_other and self.calls % 2 == 0:
            return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
        await asyncio.Event().wait()
        raise AssertionError

    def as_channel(self) -> aio.Channel:
        channel = LocalChannel(FakeRpcMetrics())
        health_pb2_grpc.add_HealthServicer_to_server(self, channel.as_server())
        return channel.as_channel()


async def test_each_service_answers_for_itself():
    health, channel = serving_channel()
    await health.serve("gateway.v1.Catalog")
    silent = LocalChannel(FakeRpcMetrics())
    readiness = Readiness(
        {
            ServiceName.CATALOG: channel,
            ServiceName.SNAPSHOT: channel,
            ServiceName.PRESIGN: silent.as_channel(),
        },
        (),
        ServiceMetrics(CollectorRegistry()),
        times=CheckTimes(interval=SOON, start_up=timedelta(0)),
    )

    async def is_known() -> bool:
        return await readiness() == {
            "catalog": "ok",
            "snapshot": "does not answer: NOT_FOUND",
            "presign": "does not answer: UNIMPLEMENTED",
        }

    async def has_ended() -> bool:
        return (await readiness())["catalog"] == "does not serve"

    async with watched(readiness):
        await eventually_async(is_known)
        await health.stop()
        await eventually_async(has_ended)


async def test_nothing_is_ready_before_it_has_answered_once():
    health, channel = serving_channel()
    await health.serve("gateway.v1.Vending")
    readiness = Readiness({ServiceName.VENDING: channel}, (), ServiceMetrics(CollectorRegistry()))

    assert tuple(missing(await readiness())) == ("vending",)

    async def is_ready() -> bool:
        return not missing(await readiness())

    async with watched(readiness):
        await eventually_async(is_ready)


class StartingEdge:
    """An edge that starts at second 0, with its vending in another process than the other services."""

    def __init__(self) -> None:
        self.now = 0.0
        self.others, channel = serving_channel()
        self.vending, vending_channel = serving_channel()
        names = (ServiceName.CATALOG, ServiceName.SNAPSHOT, ServiceName.PRESIGN)
        self.readiness = Readiness(
            dict.fromkeys(names, channel) | {ServiceName.VENDING: vending_channel},
            (),
            ServiceMetrics(CollectorRegistry()),
            times=CheckTimes(interval=SOON),
            clock=lambda: self.now,
        )

    async def serve(self, *services: str) -> None:
        for service in services:
            health = self.vending if service == "Vending" else self.others
            await health.serve(f"gateway.v1.{service}")

    async def reaches(self, *names: str) -> bool:
        states = await self.readiness()
        return all(states[name] == "ok" for name in names)

    async def missing(self) -> tuple[str, ...]:
        return tuple(missing(await self.readiness()))


async def test_edge_that_starts_is_ready_once_it_has_reached_every_service():
    edge = StartingEdge()
    await edge.serve("Catalog", "Vending")
    async with watched(edge.readiness):
        await eventually_async(partial(edge.reaches, "catalog", "vending"))
        edge.now = 9.9
        assert await edge.missing() == ("presign", "snapshot")
        assert (await edge.readiness())["presign"] == "not reached yet: does not answer: NOT_FOUND"
        await edge.serve("Snapshot", "Presign")
        await eventually_async(partial(edge.reaches, "catalog", "vending", "snapshot", "presign"))
        assert await edge.missing() == ()


async def test_start_waits_until_every_service_is_reached():
    edge = StartingEdge()
    await edge.serve("Catalog", "Vending")
    async with watched(edge.readiness):
        starting = asyncio.create_task(edge.readiness.reach_services())
        await eventually_async(partial(edge.reaches, "catalog", "vending"))
        assert not starting.done()
        await edge.serve("Snapshot", "Presign")
        await starting
        assert await edge.missing() == ()


async def test_start_during_an_outage_waits_no_longer_than_ten_seconds():
    edge = StartingEdge()
    async with watched(edge.readiness):
        starting = asyncio.create_task(edge.readiness.reach_services())

        async def is_checked() -> bool:
            return "NOT_FOUND" in (await edge.readiness())["vending"]

        await eventually_async(is_checked)
        assert not starting.done()
        edge.now = 10.1
        await starting


async def test_edge_that_starts_during_an_outage_is_ready_with_one_access_mode_after_ten_seconds():
    edge = StartingEdge()
    await edge.serve("Catalog", "Vending")
    async with watched(edge.readiness):
        await eventually_async(partial(edge.reaches, "catalog", "vending"))
        edge.now = 10.0
        assert await edge.missing() == ()
        assert (await edge.readiness())["snapshot"] == "does not answer: NOT_FOUND"


async def test_edge_that_has_reached_every_service_stays_ready_when_one_access_mode_fails_during_start_up():
    edge = StartingEdge()
    await edge.serve("Catalog", "Vending", "Snapshot", "Presign")
    async with watched(edge.readiness):
        await eventually_async(partial(edge.reaches, "catalog", "vending", "snapshot", "presign"))
        await edge.vending.stop()

        async def misses_vending() -> bool:
            return (await edge.readiness())["vending"] == "does not serve"

        await eventually_async(misses_vending)
        assert await edge.missing() == ()


async def test_a_service_that_hangs_keeps_nobody_waiting_who_asks_for_another():
    health, channel = serving_channel()
    for service in ("Catalog", "Snapshot", "Presign"):
        await health.serve(f"gateway.v1.{service}")
    hanging = Hanging()
    names = (ServiceName.CATALOG, ServiceName.SNAPSHOT, ServiceName.PRESIGN)
    readiness = Readiness(
        dict.fromkeys(names, channel) | {ServiceName.VENDING: hanging.as_channel()},
        (),
        ServiceMetrics(CollectorRegistry()),
        times=CheckTimes(interval=SOON, timeout=timedelta(hours=1), start_up=timedelta(0)),
    )

    async def are_others_known() -> bool:
        states = await readiness()
        return all(states[name] == "ok" for name in names)

    async with watched(readiness):
        await eventually_async(are_others_known)
        assert hanging.calls == 1
        assert (await readiness())["vending"] == "does not answer"
        assert not missing(await readiness())
        await health.stop()

        async def is_without_the_others() -> bool:
            return len(missing(await readiness())) == 4

        await eventually_async(is_without_the_others)


@pytest.mark.parametrize(
    ("every_other", "state", "timeout"),
    [
        (False, "does not answer: DEADLINE_EXCEEDED", timedelta(milliseconds=20)),
        # The second call is answered without waiting, so no timer runs for it.
        (True, "ok", timedelta(milliseconds=20)),
    ],
)
async def test_a_service_hangs_when_it_does_not_answer_the_second_time_either(every_other, state, timeout):
    hanging = Hanging(answers_every_other=every_other)
    readiness = Readiness(
        {ServiceName.VENDING: hanging.as_channel()},
        (),
        ServiceMetrics(CollectorRegistry()),
        times=CheckTimes(interval=timedelta(hours=1), timeout=timeout, start_up=timedelta(0)),
    )

    async def is_known() -> bool:
        return await readiness() == {"vending": state}

    async with watched(readiness):
        await eventually_async(is_known)
    assert hanging.calls == 2


async def test_readiness_is_answered_without_a_call_to_a_service():
    hanging = Hanging()
    readiness = Readiness(
        {ServiceName.VENDING: hanging.as_channel()},
        (),
        ServiceMetrics(CollectorRegistry()),
        times=CheckTimes(interval=timedelta(hours=1), timeout=SOON, start_up=timedelta(0)),
    )

    assert await readiness() == {"vending": "does not answer"}
    assert hanging.calls == 0

    async def is_known() -> bool:
        return await readiness() == {"vending": "does not answer: DEADLINE_EXCEEDED"}

    async with watched(readiness):
        await eventually_async(is_known)
        # Both of the one check, of which the next is due in an hour.
        assert hanging.calls == 2
        assert await is_known()
        assert hanging.calls == 2


async def test_what_was_seen_long_ago_does_not_count():
    health, channel = serving_channel()
    await health.serve("gateway.v1.Vending")
    now = 0.0
    readiness = Readiness(
        {ServiceName.VENDING: channel}, (), ServiceMetrics(CollectorRegistry()), clock=lambda: now
    )

    async def is_ready() -> bool:
        return not missing(await readiness())

    async with watched(readiness):
        await eventually_async(is_ready)
    now = 14.0
    assert await is_ready()
    now = 16.0
    assert await readiness() == {"vending": "not checked recently"}


class Edge:
    """Runs the catalog itself, and calls snapshot and presign elsewhere."""

    def __init__(self) -> None:
        self.health, channel = serving_channel()
        names = (ServiceName.CATALOG, ServiceName.SNAPSHOT, ServiceName.PRESIGN)
        self.registry = CollectorRegistry()
        self.readiness = Readiness(
            dict.fromkeys(names, channel),
            names[1:],
            ServiceMetrics(self.registry),
            times=CheckTimes(interval=SOON),
        )

    async def shows(self, snapshot: float, presign: float) -> bool:
        (family,) = self.registry.collect()
        shown = {sample.labels["service"]: sample.value for sample in family.samples}
        return shown == {"snapshot": snapshot, "presign": presign}


async def test_what_services_answer_is_shown_though_nobody_asks():
    edge = Edge()
    async with watched(edge.readiness):
        await eventually_async(partial(edge.shows, 0, 0))
        await edge.health.serve("gateway.v1.Snapshot")
        await eventually_async(partial(edge.shows, 1, 0))
        await edge.health.serve("gateway.v1.Presign")
        await eventually_async(partial(edge.shows, 1, 1))
        await edge.health.stop()
        await eventually_async(partial(edge.shows, 0, 0))


async def test_a_process_that_needs_nobody_has_nothing_to_watch():
    readiness = Readiness({}, (), ServiceMetrics(CollectorRegistry()))
    await readiness.watch()
    assert tuple(missing(await readiness())) == ()


ALL = ("catalog", "snapshot", "presign", "vending")


@each_case(
    ("down", "blocking"),
    [
        ((), ()),
        (("vending",), ()),
        (("presign",), ()),
        (("snapshot", "presign"), ()),
        (("catalog",), ("catalog",)),
        (("catalog", "vending"), ("catalog", "vending")),
        (("presign", "vending"), ("presign", "vending")),
        (ALL, tuple(sorted(ALL))),
    ],
)
def test_an_edge_is_ready_while_it_serves_one_access_mode(down, blocking):
    assert tuple(missing({name: "gone" if name in down else "ok" for name in ALL})) == blocking


@each_case("name", [*ALL, "workers"])
def test_a_process_of_one_service_is_ready_with_it(name):
    assert tuple(missing({name: "ok"})) == ()
    assert tuple(missing({name: "does not serve"})) == (name,)
