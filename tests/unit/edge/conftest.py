"""The edge over fake services, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.domain.audit import AuditEvent
from gateway.edge.app import EdgePorts, EdgeSettings, Rate, build
from gateway.edge.server import Limits
from gateway.v1.catalog_pb2 import Share
from tests.fakes.audit import FakeAuditLog, FakeHttpMetrics
from tests.fakes.http_connection import MemoryServer, Reply, memory_server
from tests.fakes.openapi import one_openapi_document  # noqa: F401 -- a fixture of all tests below
from tests.fakes.services import FakeRecipient, FakeServices, FakeTable, World, fake_services
from tests.waiting import eventually_async

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
BASE = "/delta-sharing"
AUTH = {"Authorization": "Bearer token-of-ann"}


@dataclass
class Edge:
    """A running edge, and everything around it."""

    services: FakeServices
    server: MemoryServer
    audit: FakeAuditLog
    metrics: FakeHttpMetrics
    clock: list[datetime] = field(default_factory=lambda: [NOON])

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.server.get(BASE + path, AUTH | _dashed(headers))

    async def head(self, path: str, **headers: str) -> Reply:
        return await self.server.connect().request("HEAD", BASE + path, AUTH | _dashed(headers))

    async def post(self, path: str, body: bytes = b"{}", **headers: str) -> Reply:
        fields = AUTH | {"Content-Type": "application/json"} | _dashed(headers)
        return await self.server.post(BASE + path, fields, body)

    async def settled(self) -> AuditEvent:
        """Wait until the request is over for the server too, and return what was noted of it."""
        await eventually_async(lambda: self.audit.noted, pause=0)
        return self.audit.noted[-1]


def make_world(**changes: Any) -> World:
    defaults: dict[str, Any] = {
        "shares": [Share(name="Sales", id="id-Sales"), Share(name="hidden")],
        "tables": [
            FakeTable(share="Sales", schema="eu", name="orders", files=8),
            FakeTable(share="Sales", schema="eu", name="empty", files=0),
            FakeTable(share="Sales", schema="eu", name="dirs", access_modes=("dir",)),
            FakeTable(share="Sales", schema="eu", name="both", access_modes=("url", "dir")),
            FakeTable(share="Sales", schema="us", name="history", history_shared=True),
        ],
        "recipients": [
            FakeRecipient(name="ann", token="token-of-ann", shares=("Sales",)),
            FakeRecipient(name="bob", token="token-of-bob", shares=(), disabled=True),
        ],
    }
    return World(**(defaults | changes))


@asynccontextmanager
async def start_edge(
    *,
    world: World | None = None,
    limits: Limits | None = None,
    rate: Rate | None = None,
    **settings: Any,
) -> AsyncIterator[Edge]:
    services, audit, metrics, clock = (
        fake_services(world or make_world()),
        FakeAuditLog(),
        FakeHttpMetrics(),
        [NOON],
    )
    rate = rate or Rate(requests_per_second=1000, burst=1000)
    app = build(
        EdgeSettings(rate_of=lambda _: rate, **settings),
        services.stubs,
        EdgePorts(audit=audit, metrics=metrics, clock=lambda: clock[0]),
    )
    async with memory_server(app, limits) as server:
        yield Edge(services=services, server=server, audit=audit, metrics=metrics, clock=clock)


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    async with start_edge() as started:
        yield started


def later(**span: float) -> datetime:
    return NOON + timedelta(**span)


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
