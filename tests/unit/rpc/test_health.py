from __future__ import annotations

import asyncio
from typing import cast

from grpc import aio
from grpc_health.v1 import health_pb2

from gateway.rpc.server import Health

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Server:
    """Keeps the handlers that are registered with a gRPC server."""

    def __init__(self):
        self.handlers = {}

    def add_generic_rpc_handlers(self, handlers):
        pass

    def add_registered_method_handlers(self, service, handlers):
        self.handlers.update(handlers)


class Watcher:
    """The context of a call that watches a service."""

    def __init__(self):
        self.statuses = []
        self.during_first_write = None

    async def write(self, message):
        self.statuses.append(message.status)
        if self.during_first_write:
            started, self.during_first_write = self.during_first_write(), None
            self.task = asyncio.ensure_future(started)
            await asyncio.sleep(0)


async def serving():
    health, server = Health(), Server()
    health.register(cast(aio.Server, server))
    await health.serve("gateway.v1.Vending")
    return health, server.handlers["Watch"].unary_stream


async def test_watcher_of_a_process_that_stops_while_its_status_is_written_sees_not_serving():
    health, watch = await serving()
    watcher = Watcher()
    watcher.during_first_write = health.stop

    await watch(health_pb2.HealthCheckRequest(service="gateway.v1.Vending"), watcher)

    assert watcher.statuses == [SERVING, NOT_SERVING]
    assert not health.is_watched


async def test_watcher_of_a_stopped_process_sees_not_serving_once():
    health, watch = await serving()
    await health.stop()
    watcher = Watcher()

    await watch(health_pb2.HealthCheckRequest(service="gateway.v1.Vending"), watcher)

    assert watcher.statuses == [NOT_SERVING]
