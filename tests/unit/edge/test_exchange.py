from __future__ import annotations

from datetime import timedelta

import grpc
import pytest
from aiohttp.test_utils import make_mocked_request
from grpc import aio

from gateway.domain.audit import AuditKind
from gateway.domain.rate import Rate
from gateway.edge.auth import ANONYMOUS
from gateway.edge.compression import Compression
from gateway.edge.exchange import Edge, Exchange, grant_error
from gateway.edge.lists import ListRenderer
from gateway.edge.rate import RateLimiter
from gateway.edge.settings import EdgePorts, EdgeSettings
from gateway.errors import (
    SERVICE_REFUSED,
    GatewayError,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from gateway.rpc.rate import LocalBuckets
from gateway.rpc.status import ERROR_CODE
from gateway.v1.catalog_pb2 import ListSharesRequest
from tests.fakes.audit import FakeAuditLog, FakeHttpMetrics
from tests.fakes.services import FakeServices, fake_services
from tests.unit.edge.conftest import AUTH, NOON, make_world


@pytest.fixture
def services() -> FakeServices:
    return fake_services(make_world())


def exchange(
    services: FakeServices,
    headers: dict[str, str] | None = None,
    *,
    anonymous: bool = False,
    timeout: timedelta = timedelta(seconds=7),
) -> Exchange:
    rate = Rate(requests_per_second=1, burst=1)
    settings = EdgeSettings(rate_of=lambda _: rate, anonymous=anonymous, request_timeout=timeout)
    ports = EdgePorts(audit=FakeAuditLog(), metrics=FakeHttpMetrics(), clock=lambda: NOON)
    limiter = RateLimiter(settings.rate_of, LocalBuckets(ports.clock))
    edge = Edge(
        settings=settings,
        services=services.stubs,
        ports=ports,
        limiter=limiter,
        lists=ListRenderer(),
        compression=Compression(enabled=True),
    )
    request = make_mocked_request("GET", "/", headers or AUTH, match_info={"share": "Sales"})
    return Exchange(edge, request, "listShares", "req-1")


def status(code: grpc.StatusCode, error_code: str) -> aio.AioRpcError:
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata((ERROR_CODE, error_code)), "said the service")


async def test_the_principal_is_whom_the_catalog_knows(services: FakeServices) -> None:
    asked = exchange(services)
    asked.authenticate()
    await asked.ask_catalog(services.stubs.catalog.ListShares, ListSharesRequest(caller=asked.caller))
    assert asked.principal == "ann"
    assert asked.event(AuditKind.REQUEST, "OK").principal == "ann"


async def test_a_refusal_of_the_catalog_is_the_callers(services: FakeServices) -> None:
    asked = exchange(services, {"Authorization": "Bearer nobody"})
    asked.authenticate()
    with pytest.raises(Unauthenticated):
        await asked.ask_catalog(services.stubs.catalog.ListShares, ListSharesRequest(caller=asked.caller))


@pytest.mark.parametrize("refusal", [Unauthenticated, PermissionDenied])
async def test_a_refusal_of_the_edge_itself_is_our_trouble_and_logged(
    services: FakeServices, caplog: pytest.LogCaptureFixture, refusal: type[GatewayError]
) -> None:
    services.catalog.error = refusal("a certificate of nobody", error_code=SERVICE_REFUSED)
    asked = exchange(services)
    asked.authenticate()
    with pytest.raises(Unavailable, match="do not trust each other"):
        await asked.ask_catalog(services.stubs.catalog.ListShares, ListSharesRequest(caller=asked.caller))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "a certificate of nobody" in caplog.text


def test_nothing_is_presented_before_it_was_authenticated_or_when_it_need_not_be(
    services: FakeServices,
) -> None:
    asked = exchange(services, {"Authorization": "nonsense"}, anonymous=True)
    asked.authenticate()
    assert asked.caller.token_sha256 == ANONYMOUS


def test_the_time_that_is_left_is_never_none(services: FakeServices) -> None:
    assert 6 < exchange(services).remaining <= 7
    assert exchange(services, timeout=timedelta(0)).remaining > 0


def test_a_refused_grant_is_our_trouble_and_other_errors_stay() -> None:
    refused = grant_error(status(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"))
    missing = grant_error(status(grpc.StatusCode.NOT_FOUND, "RESOURCE_DOES_NOT_EXIST"))
    assert isinstance(refused, Unavailable)
    assert isinstance(missing, NotFound)


def test_a_service_that_refuses_the_edge_itself_tells_the_caller_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = grant_error(status(grpc.StatusCode.PERMISSION_DENIED, SERVICE_REFUSED))
    assert isinstance(error, Unavailable)
    assert "do not trust each other" in error.message
    assert "see principals" in caplog.text


def test_a_service_that_throttles_the_edge_has_the_caller_come_back_later() -> None:
    error = grant_error(status(grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"))
    assert isinstance(error, Unavailable)
    assert error.retry_after == timedelta(seconds=1)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(200, AuditKind.REQUEST), (400, AuditKind.REQUEST), (401, AuditKind.DENIAL), (404, AuditKind.DENIAL)],
)
def test_what_was_refused_is_noted_as_a_denial(services: FakeServices, code: int, kind: AuditKind) -> None:
    asked = exchange(services)
    asked.note(code, "X")
    audit = asked.edge.ports.audit
    assert isinstance(audit, FakeAuditLog)
    assert [(event.kind, event.share, event.outcome) for event in audit.noted] == [(kind, "Sales", "X")]
