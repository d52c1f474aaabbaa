from __future__ import annotations

import pytest

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
        }
    )

    assert await readiness() == {
        "catalog": "ok",
        "snapshot": "does not answer: NOT_FOUND",
        "presign": "does not answer: UNIMPLEMENTED",
    }
    await health.stop()
    assert (await readiness())["catalog"] == "does not serve"


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
