from __future__ import annotations

from gateway.bootstrap.readiness import Readiness
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
