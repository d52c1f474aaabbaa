"""The edge over fake services, in a thread of its own: the simplest gateway that the suite runs against."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from gateway.edge.app import EdgePorts, EdgeSettings, Rate, build
from gateway.edge.server import Limits, Listen, serve
from gateway.v1.catalog_pb2 import Share
from tests.contract.http.facts import Gateway, ShareFacts, TableFacts
from tests.fakes.audit import FakeAuditLog, FakeHttpMetrics
from tests.fakes.services import (
    FILE_SIZE,
    FakeRecipient,
    FakeServices,
    FakeTable,
    World,
    fake_services,
)

_PATIENCE = 60
_BODY_LIMIT = 64 * 1024
_SLOW_BURST = 3
_DESCRIBED = ShareFacts(
    name="Finance",
    id="id-Finance",
    display_name="Finance \u2014 Q3",
    comment="books\nand \u2028 ledgers",
    properties={"owner": "ann", "region": "eu"},
)
_SHARES = ("Archive", "Finance", "Sales")
_TABLES = {
    "plain": FakeTable(share="Sales", schema="eu", name="orders"),
    "large": FakeTable(share="Sales", schema="eu", name="clicks", files=2500),
    "history": FakeTable(share="Sales", schema="us", name="prices", history_shared=True),
    "bounded": FakeTable(share="Sales", schema="us", name="ledger", history_shared=True, start_version=1),
    "change_feed": FakeTable(
        share="Sales", schema="us", name="stock", files=3, version=5, history_shared=True, change_feed=True
    ),
    "vectors": FakeTable(
        share="Sales", schema="us", name="readings", files=4, version=1, history_shared=True, vectors=True
    ),
    "dir_only": FakeTable(
        share="Sales", schema="us", name="scans", access_modes=("dir",), history_shared=True
    ),
    "both_modes": FakeTable(
        share="Sales",
        schema="us",
        name="trips",
        access_modes=("url", "dir"),
        history_shared=True,
        auxiliary_locations=("s3://other/trips",),
    ),
    "hidden": FakeTable(share="Payroll", schema="eu", name="salaries"),
}


@dataclass
class InProcess:
    """A gateway in this process, whose parts a test may look at and break."""

    gateway: Gateway
    services: FakeServices
    audit: FakeAuditLog
    metrics: FakeHttpMetrics
    # Where it runs: what a test changes while a request is under way, it changes there.
    loop: asyncio.AbstractEventLoop
    # The other end of the connection of each answer.
    peers: list[Any]

    def settled_pages(self, least: int = 1) -> int:
        """Wait for a number of pages, then until the loop turns often without another; return the number."""
        return int(_await(self.loop, self.services.snapshot.settled_pages(least)))


@contextmanager
def fakes(limits: Limits | None = None, **settings: Any) -> Iterator[InProcess]:
    """Run the edge over fake services."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="gateway", daemon=True)
    thread.start()
    try:
        opened = _running(limits or Limits(), settings)
        started: InProcess = _await(loop, opened.__aenter__())
        try:
            yield started
        finally:
            _await(loop, opened.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_PATIENCE)
        loop.close()


def _await(loop: asyncio.AbstractEventLoop, awaitable: Any) -> Any:
    future: Future[Any] = asyncio.run_coroutine_threadsafe(awaitable, loop)
    return future.result(_PATIENCE)


@asynccontextmanager
async def _running(limits: Limits, settings: dict[str, Any]) -> AsyncIterator[InProcess]:
    services, audit, metrics = fake_services(_world()), FakeAuditLog(), FakeHttpMetrics()
    defaults: dict[str, Any] = {"rate_of": _rate_of, "body_limit": _BODY_LIMIT}
    app = build(
        EdgeSettings(**(defaults | settings)),
        services.stubs,
        EdgePorts(audit=audit, metrics=metrics, clock=lambda: datetime.now(UTC)),
    )
    peers: list[Any] = []

    async def keep_peer(request: web.Request, response: web.StreamResponse) -> None:
        peers.append(request.transport and request.transport.get_extra_info("peername"))

    app.on_response_prepare.append(keep_peer)
    async with serve(app, Listen(), limits) as port:
        yield InProcess(
            gateway=_gateway(f"http://127.0.0.1:{port}/delta-sharing"),
            services=services,
            audit=audit,
            metrics=metrics,
            loop=asyncio.get_running_loop(),
            peers=peers,
        )


def _world() -> World:
    described = Share(
        name=_DESCRIBED.name,
        id=_DESCRIBED.id,
        display_name=_DESCRIBED.display_name,
        comment=_DESCRIBED.comment,
        properties=_DESCRIBED.properties,
    )
    others = [Share(name=name, id=f"id-{name}") for name in ("Archive", "Payroll", "Sales")]
    return World(
        shares=sorted([described, *others], key=lambda share: share.name.lower()),
        tables=list(_TABLES.values()),
        recipients=[
            FakeRecipient(name="ann", token="token-of-ann", shares=_SHARES),
            FakeRecipient(name="cleo", token="token-of-cleo", shares=_SHARES),
            FakeRecipient(name="slow", token="token-of-slow", shares=_SHARES),
            FakeRecipient(name="bob", token="token-of-bob", shares=_SHARES, disabled=True),
        ],
        files_per_page=1000,
    )


def _rate_of(principal: str) -> Rate:
    if principal == "slow":
        return Rate(requests_per_second=0.001, burst=_SLOW_BURST)
    return Rate(requests_per_second=100_000, burst=100_000)


def _gateway(url: str) -> Gateway:
    return Gateway(
        url=url,
        token="token-of-ann",
        other_token="token-of-cleo",
        expired_token="token-of-yesterday",
        disabled_token="token-of-bob",
        slow_token="token-of-slow",
        slow_burst=_SLOW_BURST,
        shares=_SHARES,
        described=_DESCRIBED,
        body_limit=_BODY_LIMIT,
        serves_files=False,
        **{kind: _facts(table) for kind, table in _TABLES.items()},
    )


def _facts(table: FakeTable) -> TableFacts:
    return TableFacts(
        share=table.share,
        schema=table.schema,
        name=table.name,
        id=table.id,
        share_id=f"id-{table.share}",
        version=table.version,
        files=table.files,
        size=table.files * FILE_SIZE,
        location=table.location,
        access_modes=table.access_modes,
        auxiliary_locations=table.auxiliary_locations,
    )
