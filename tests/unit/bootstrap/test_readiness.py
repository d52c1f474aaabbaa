from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.service_metrics import ServiceMetrics
from gateway.bootstrap.readiness import Readiness, missing
from gateway.config.schema import ServiceName
from gateway.rpc.local import LocalChannel
from gateway.rpc.server import Health
from tests.fakes.metrics import FakeRpcMetrics


async def test_each_service_answers_for_itself():
    health, channel = Health(), LocalChannel(FakeRpcMetrics())
    health.register(channel.as_server())
    await health.serve("gateway.v1.Catalog")
    silent = LocalChannel(FakeRpcMetrics())

    readiness = Readiness(
        {
            ServiceName.CATALOG: channel.as_channel(),
            ServiceName.SNAPSHOT: channel.as_channel(),
            ServiceName.PRESIGN: silent.as_channel(),
        },
        (),
        ServiceMetrics(CollectorRegistry()),
    )

    assert await readiness() == {
        "catalog": "ok",
        "snapshot": "does not answer: NOT_FOUND",
        "presign": "does not answer: UNIMPLEMENTED",
    }
    await health.stop()
    assert (await readiness())["catalog"] == "does not serve"


class Edge:
    """Runs the catalog itself, and calls snapshot and presign elsewhere."""

    def __init__(self) -> None:
        self.health, channel = Health(), LocalChannel(FakeRpcMetrics())
        self.health.register(channel.as_server())
        names = (ServiceName.CATALOG, ServiceName.SNAPSHOT, ServiceName.PRESIGN)
        self.registry = CollectorRegistry()
        self.readiness = Readiness(
            dict.fromkeys(names, channel.as_channel()),
            names[1:],
            ServiceMetrics(self.registry),
            interval=timedelta(milliseconds=5),
        )

    @property
    def reachable(self) -> dict[str, float]:
        (family,) = self.registry.collect()
        return {sample.labels["service"]: sample.value for sample in family.samples}


async def test_whoever_asks_whether_it_is_ready_has_what_services_answer_shown():
    edge = Edge()
    await edge.health.serve("gateway.v1.Snapshot")

    await edge.readiness()

    assert edge.reachable == {"snapshot": 1, "presign": 0}


async def test_what_services_answer_is_shown_though_nobody_asks():
    edge = Edge()
    watching = asyncio.create_task(edge.readiness.watch())

    for serving, shown in (("Snapshot", (1, 0)), ("Presign", (1, 1))):
        await edge.health.serve(f"gateway.v1.{serving}")
        async with asyncio.timeout(10):
            while tuple(edge.reachable.values()) != shown:
                await asyncio.sleep(0.005)
    await edge.health.stop()
    async with asyncio.timeout(10):
        while tuple(edge.reachable.values()) != (0, 0):
            await asyncio.sleep(0.005)
    watching.cancel()


async def test_a_process_that_calls_nobody_elsewhere_has_nothing_to_watch():
    metrics = ServiceMetrics(CollectorRegistry())
    await Readiness({}, (), metrics).watch()


ALL = ("catalog", "snapshot", "presign", "vending")


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("name", [*ALL, "workers"])
def test_a_process_of_one_service_is_ready_with_it(name):
    assert tuple(missing({name: "ok"})) == ()
    assert tuple(missing({name: "does not serve"})) == (name,)
