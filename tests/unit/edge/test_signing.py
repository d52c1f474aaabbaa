from __future__ import annotations

import asyncio

import pytest
from aiohttp.test_utils import make_mocked_request

from gateway.domain.rate import Rate
from gateway.edge.app import EdgePorts, EdgeSettings
from gateway.edge.compression import Compression
from gateway.edge.exchange import Edge, Exchange
from gateway.edge.lists import ListRenderer
from gateway.edge.rate import RateLimiter
from gateway.edge.signing import PageSigner, PresignGrant
from gateway.errors import Unavailable
from gateway.rpc.rate import LocalBuckets
from gateway.v1.catalog_pb2 import AUDIENCE_PRESIGN, ResolveResponse
from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, HOLE_URL, FilePage, PathGroup
from tests.fakes.audit import FakeAuditLog, FakeHttpMetrics
from tests.fakes.services import FAR_MS, FakeServices, fake_services
from tests.fakes.world import make_grant
from tests.unit.edge.conftest import NOON, make_world

PAGE = FilePage(
    lines=b"",
    holes=[0, 0, 0],
    hole_kinds=bytes([HOLE_URL, HOLE_URL, HOLE_EXPIRATION]),
    groups=[PathGroup(paths=b"a"), PathGroup(location=2, paths=b"b")],
    hole_groups=b"\x00\x01",
    files=2,
    file_bytes=7,
)


def signer(services: FakeServices) -> PageSigner:
    rate = Rate(requests_per_second=1, burst=1)
    edge = Edge(
        settings=EdgeSettings(rate_of=lambda _: rate),
        services=services.stubs,
        ports=EdgePorts(audit=FakeAuditLog(), metrics=FakeHttpMetrics(), clock=lambda: NOON),
        limiter=RateLimiter(lambda _: rate, LocalBuckets(lambda: NOON)),
        lists=ListRenderer(),
        compression=Compression(enabled=True),
    )
    exchange = Exchange(edge, make_mocked_request("POST", "/"), "queryTable", "id")
    table = services.presign.world.tables[0]
    resolved = ResolveResponse(table=table.to_proto(), expires_at_ms=FAR_MS)
    return PageSigner(exchange, PresignGrant(exchange, resolved, make_grant(AUDIENCE_PRESIGN, table, "ann")))


async def test_each_group_is_signed_for_its_location_and_the_earliest_expiration_is_the_pages() -> None:
    services = fake_services(make_world())
    services.presign.step_ms = -5
    page = await signer(services).sign(PAGE)
    assert [(request.location, request.paths) for request in services.presign.requests] == [
        (0, b"a"),
        (2, b"b"),
    ]
    assert (page.files, page.file_bytes, page.expires_at_ms) == (2, 7, FAR_MS - 5)
    assert page.lines.endswith(b"%d" % (FAR_MS - 5))


async def test_a_page_without_paths_is_not_signed() -> None:
    services = fake_services(make_world())
    page = await signer(services).sign(FilePage(lines=b'{"metaData":{}}\n'))
    assert (page.lines, page.expires_at_ms) == (b'{"metaData":{}}\n', None)
    assert services.presign.requests == []


async def test_groups_are_signed_at_the_same_time() -> None:
    services = fake_services(make_world())
    services.presign.together = asyncio.Barrier(2)
    async with asyncio.timeout(60):
        assert (await signer(services).sign(PAGE)).files == 2


async def test_a_group_that_cannot_be_signed_fails_the_page_with_its_error() -> None:
    services = fake_services(make_world())
    services.presign.error = Unavailable("the storage does not answer")
    with pytest.raises(Unavailable, match="the storage does not answer"):
        await signer(services).sign(PAGE)
