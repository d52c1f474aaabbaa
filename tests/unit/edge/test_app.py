from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network

import pytest
from aiohttp import web

from gateway.domain.audit import AuditKind
from gateway.edge.app import EdgePorts, EdgeSettings, Files, Rate, build
from gateway.edge.routes import ROUTES
from gateway.errors import DeadlineExceeded, Internal, PermissionDenied, Unavailable
from gateway.v1.catalog_pb2 import Share
from tests.cases import each_case
from tests.compressed import plain
from tests.fakes.audit import FakeAuditLog, FakeHttpMetrics
from tests.fakes.http_connection import memory_server
from tests.fakes.services import FakeRecipient, FakeTable, fake_services
from tests.unit.edge.conftest import AUTH, BASE, NOON, Edge, later, make_world, start_edge
from tests.waiting import DEADLINES

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_a_sane_request_id_goes_through_and_comes_back(edge: Edge) -> None:
    reply = await edge.get("/shares", x_request_id="req-1", traceparent=TRACE)
    assert reply.headers["x-request-id"] == "req-1"
    assert edge.services.catalog.metadata == [(("x-request-id", "req-1"), ("traceparent", TRACE))]
    assert edge.audit.noted[0].request_id == "req-1"


async def test_an_insane_request_id_is_replaced_everywhere(edge: Edge) -> None:
    reply = await edge.get("/shares", x_request_id="bad id", traceparent="junk")
    made = reply.headers["x-request-id"]
    assert made != "bad id"
    assert edge.services.catalog.metadata == [(("x-request-id", made),)]


async def test_every_answer_is_protected_and_names_no_server(edge: Edge) -> None:
    for path in ("/shares", "/docs", "/openapi.json", "/nothing", "/shares/none"):
        reply = await edge.get(path)
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert "Server" not in reply.headers
        assert "x-request-id" in reply.headers


async def test_a_token_is_looked_for_in_the_header_only(edge: Edge) -> None:
    for path, headers in (
        ("/shares?access_token=token-of-ann", {}),
        ("/shares", {"Cookie": "access_token=token-of-ann; Authorization=Bearer token-of-ann"}),
        ("/shares", {"Proxy-Authorization": "Bearer token-of-ann"}),
    ):
        reply = await edge.server.get(BASE + path, headers)
        assert reply.status == 401
        assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert edge.services.catalog.requests == []


async def test_the_token_itself_reaches_nobody(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await edge.get("/shares")
        await edge.server.get(f"{BASE}/shares", {"Authorization": "Bearer token-of-nobody"})
    assert b"token-of" not in b"".join(
        request.SerializeToString() for request in edge.services.catalog.requests
    )
    assert "token-of" not in repr(edge.audit.noted) + caplog.text


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/shares/",
        "/share",
        "//shares",
        "/shares/Sales/tables",
        "/shares/a/schemas/b",
        "/shares/a/schemas/b/tables/",
    ],
)
async def test_an_unknown_path_is_404_with_a_body(edge: Edge, path: str) -> None:
    reply = await edge.get(path)
    assert reply.status == 404
    assert json.loads(reply.body)["errorCode"] == "RESOURCE_DOES_NOT_EXIST"
    assert edge.metrics.requests == [("unmatched", "GET", 404)]
    assert edge.audit.noted == []


IMPOSSIBLE_NAMES = [
    "a%20b",
    "a%2Fb",
    "a%2fb",
    "a%00b",
    "a%7Fb",
    "%0a",
    "..",
    "%2e%2e",
    ".",
    "%ff",
    "a%252Fb",
    "x" * 5000,
    "%F0%9F%98%80",
]


async def test_a_name_that_cannot_exist_is_404(edge: Edge) -> None:
    wrong = {}
    for name in IMPOSSIBLE_NAMES:
        for path in (
            f"/shares/{name}",
            f"/shares/{name}/schemas",
            f"/shares/Sales/schemas/{name}/tables",
            f"/shares/Sales/schemas/eu/tables/{name}/version",
        ):
            reply = await edge.get(path)
            found = reply.status, json.loads(reply.body)["errorCode"]
            if found != (404, "RESOURCE_DOES_NOT_EXIST"):
                wrong[path] = found
    assert wrong == {}


@each_case(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/shares", "GET"),
        ("POST", "/shares", "GET"),
        ("OPTIONS", "/shares", "GET"),
        ("DELETE", "/shares/x", "GET"),
        ("PUT", "/shares/x/schemas", "GET"),
        ("GET", "/shares/x/schemas/y/tables/z", "HEAD"),
        ("GET", "/shares/x/schemas/y/tables/z/query", "POST"),
        ("POST", "/shares/x/schemas/y/tables/z/metadata", "GET"),
        ("POST", "/shares/x/schemas/y/tables/z/changes?startingVersion=0", "GET"),
        ("PUT", "/shares/x/schemas/y/tables/z/changes?startingVersion=0", "GET"),
    ],
)
async def test_a_wrong_method_is_405_with_the_right_ones(
    edge: Edge, method: str, path: str, allowed: str
) -> None:
    reply = await edge.server.connect().request(method, f"{BASE}{path}")
    assert reply.status == 405
    assert reply.headers["Allow"] == allowed
    assert json.loads(reply.body)["errorCode"] == "UNSUPPORTED_OPERATION"


async def test_head_of_a_route_of_get_is_405(edge: Edge) -> None:
    reply = await edge.head("/shares/x/schemas/y/tables/z/changes?startingVersion=0")
    assert (reply.status, reply.headers["Allow"]) == (405, "GET")


async def test_methods_that_clients_make_up_are_one_in_the_metrics(edge: Edge) -> None:
    for method in ("MKCOL", "PROPFIND"):
        await edge.server.connect().request(method, f"{BASE}/shares")
    assert edge.metrics.requests == [("unmatched", "OTHER", 405)] * 2


async def test_a_request_of_nobody_whom_the_catalog_knows_counts_for_no_recipient(edge: Edge) -> None:
    await edge.get("/shares", Authorization="Bearer made-up")
    assert [status for _, _, status in edge.metrics.requests] == [401]
    assert edge.metrics.recipients == []


async def test_requests_are_counted_by_route_not_by_path(edge: Edge) -> None:
    await edge.get("/shares/Sales")
    await edge.get("/shares/none")
    assert edge.metrics.requests == [("/shares/{share}", "GET", 200), ("/shares/{share}", "GET", 404)]


async def test_metrics_know_every_route_before_anybody_asks() -> None:
    ports = ports_of(EchoFiles())
    build(
        EdgeSettings(rate_of=lambda _: Rate(requests_per_second=1, burst=1)),
        fake_services(make_world()).stubs,
        ports,
    )
    assert isinstance(ports.metrics, FakeHttpMetrics)
    open_routes = {("/openapi.json", "GET"), ("/docs", "GET")}
    files = {("/files/{storage}/{path}", method) for method in ("GET", "HEAD")}
    assert ports.metrics.shown == {(route.path, route.method) for route in ROUTES} | open_routes | files


@pytest.mark.parametrize("prefix", ["", "/v9", "/deep/er"])
async def test_the_prefix_is_configurable(prefix: str) -> None:
    async with start_edge(prefix=prefix) as edge:
        assert (await edge.server.get(f"{prefix}/shares", AUTH)).status == 200
        assert (await edge.server.get(f"{BASE}/shares", AUTH)).status == 404


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (PermissionDenied("recipient 'ann' is disabled"), 403, "PERMISSION_DENIED"),
        (Unavailable("try again"), 503, "TEMPORARILY_UNAVAILABLE"),
        (DeadlineExceeded("too slow"), 504, "DEADLINE_EXCEEDED"),
        (Internal("internal error"), 500, "INTERNAL_ERROR"),
        (ZeroDivisionError("secret"), 500, "INTERNAL_ERROR"),
    ],
)
async def test_an_error_of_a_service_is_the_answer(
    edge: Edge, error: Exception, status: int, code: str
) -> None:
    edge.services.catalog.error = error
    reply = await edge.get("/shares")
    assert reply.status == status
    assert json.loads(reply.body)["errorCode"] == code
    assert b"secret" not in reply.body
    assert edge.audit.noted[0].outcome == code


async def test_an_error_of_our_own_is_500_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def rate_of(_: str) -> Rate:
        raise ZeroDivisionError("secret")

    services, ports = fake_services(make_world()), ports_of()
    app = build(EdgeSettings(rate_of=rate_of), services.stubs, ports)
    async with memory_server(app) as server:
        reply = await server.get(f"{BASE}/shares", AUTH)
    assert reply.status == 500
    assert json.loads(reply.body) == {"errorCode": "INTERNAL_ERROR", "message": "internal error"}
    assert [record.name for record in caplog.records] == ["gateway.edge.errors"]


async def test_a_service_that_takes_too_long_is_cut_off() -> None:
    for seconds in DEADLINES:
        async with start_edge(request_timeout=timedelta(seconds=seconds)) as edge:
            edge.services.snapshot.gate = asyncio.Semaphore(0)
            reply = await edge.post("/shares/Sales/schemas/eu/tables/orders/query")
        assert reply.status == 504
        if edge.services.snapshot.requests:
            break
    assert edge.services.snapshot.closed == 1


async def test_the_rest_of_the_request_timeout_is_the_deadline_of_each_call() -> None:
    async with start_edge(request_timeout=timedelta(seconds=9)) as edge:
        await edge.get("/shares/Sales/schemas/eu/tables/orders/version")
        (timeout,) = edge.services.snapshot.timeouts
    assert timeout is not None
    assert 0 < timeout <= 9


async def test_too_many_requests_are_429_with_retry_after() -> None:
    async with start_edge(rate=Rate(requests_per_second=0.5, burst=2)) as edge:
        statuses = [(await edge.get("/shares")).status for _ in range(3)]
        throttled = await edge.get("/shares")
        asked = len(edge.services.catalog.requests)
        edge.clock[0] = later(seconds=2)
        again = await edge.get("/shares")
    assert statuses == [200, 200, 429]
    assert throttled.headers["Retry-After"] == "2"
    assert json.loads(throttled.body)["errorCode"] == "RESOURCE_EXHAUSTED"
    assert asked == 2
    assert again.status == 200
    assert edge.metrics.throttled == 2
    assert edge.metrics.recipients[1:4] == [("ann", 200), ("ann", 429), ("ann", 429)]
    assert [event.kind for event in edge.audit.noted[2:4]] == [AuditKind.DENIAL] * 2
    assert [event.principal for event in edge.audit.noted[2:4]] == ["ann"] * 2


async def test_who_holds_a_revoked_token_does_not_use_up_the_rate_of_its_former_owner() -> None:
    world = make_world()
    async with start_edge(world=world, rate=Rate(requests_per_second=0.001, burst=3)) as edge:
        assert (await edge.get("/shares")).status == 200
        world.recipients = [replace(world.recipients[0], token="token-of-ann-2")]
        statuses = [(await edge.get("/shares")).status for _ in range(5)]
        fresh = await edge.server.get(f"{BASE}/shares", {"Authorization": "Bearer token-of-ann-2"})
    assert statuses == [401] * 5
    assert fresh.status == 200
    assert {event.principal for event in edge.audit.noted[1:6]} == {""}


async def test_a_listing_is_noted_with_who_what_and_how(edge: Edge) -> None:
    await edge.get("/shares/Sales/schemas", user_agent="pandas/1")
    (event,) = edge.audit.noted
    assert event.kind is AuditKind.REQUEST
    assert (event.operation, event.outcome, event.principal) == ("listSchemas", "OK", "ann")
    assert (event.share, event.remote, event.user_agent, event.at) == ("Sales", "192.0.2.1", "pandas/1", NOON)
    assert event.id
    assert event.duration_ms >= 0
    assert edge.audit.appended == []


@pytest.mark.parametrize(
    ("path", "headers", "outcome"),
    [
        ("/shares", {}, "UNAUTHENTICATED"),
        ("/shares", {"Authorization": "Bearer who"}, "UNAUTHENTICATED"),
        ("/shares", {"Authorization": "Bearer token-of-bob"}, "PERMISSION_DENIED"),
        ("/shares/hidden", AUTH, "RESOURCE_DOES_NOT_EXIST"),
    ],
)
async def test_what_is_denied_is_noted_as_such(
    edge: Edge, path: str, headers: dict[str, str], outcome: str
) -> None:
    await edge.server.get(BASE + path, headers)
    (event,) = edge.audit.noted
    assert (event.kind, event.outcome) == (AuditKind.DENIAL, outcome)


async def test_a_log_can_hold_whatever_a_client_sends(edge: Edge) -> None:
    await edge.get("/shares/" + "x" * 999, user_agent="\udcff" + "y" * 2000)
    (event,) = edge.audit.noted
    assert len(event.share) == 255
    assert len(event.user_agent) == 512
    (event.share + event.user_agent).encode()


async def test_a_trusted_proxy_says_where_a_request_came_from() -> None:
    async with start_edge(trusted_proxies=(ip_network("192.0.2.0/24"),)) as edge:
        await edge.get("/shares", X_Forwarded_For="198.51.100.7")
    assert edge.audit.noted[0].remote == "198.51.100.7"


async def test_nobody_else_says_so(edge: Edge) -> None:
    await edge.get("/shares", X_Forwarded_For="198.51.100.7")
    assert edge.audit.noted[0].remote == "192.0.2.1"


async def test_anonymous_callers_are_served_whatever_they_present() -> None:
    world = make_world(
        shares=[Share(name="s")], recipients=[FakeRecipient(name="anonymous", token="", shares=("s",))]
    )
    async with start_edge(world=world, anonymous=True) as edge:
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "nonsense"}):
            assert (await edge.server.get(f"{BASE}/shares", headers)).status == 200
    assert {event.principal for event in edge.audit.noted} == {"anonymous"}


async def test_files_are_mounted_below_the_prefix_without_a_token() -> None:
    async with memory_server(files_app(EchoFiles())) as server:
        reply = await server.get(f"{BASE}/files/lake/a/b%20c.parquet?sig=1")
        head = await server.connect().request("HEAD", f"{BASE}/files/lake/a")
        post = await server.post(f"{BASE}/files/lake/a")
    assert reply.body == b"lake a/b c.parquet"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert head.status == 200
    assert (post.status, post.headers["Allow"]) == (405, "GET,HEAD")


async def test_what_files_refuse_has_the_same_error_body() -> None:
    async with memory_server(files_app(EchoFiles(PermissionDenied("the URL has expired")))) as server:
        reply = await server.get(f"{BASE}/files/lake/a")
    assert json.loads(reply.body) == {"errorCode": "PERMISSION_DENIED", "message": "the URL has expired"}


async def test_an_answer_that_fails_when_it_has_begun_is_cut_off_and_not_answered_again() -> None:
    async with memory_server(files_app(BrokenFiles())) as server:
        connection = server.connect()
        reply = await connection.request("GET", f"{BASE}/files/lake/a")
    assert (reply.body, reply.complete) == (b"half", False)
    assert connection.transport.aborted
    assert connection.transport.output.count(b"HTTP/1.1") == 1


async def test_a_client_that_goes_away_is_counted_as_gone(edge: Edge) -> None:
    edge.services.snapshot.gate = asyncio.Semaphore(0)
    connection = edge.server.connect()
    path = f"{BASE}/shares/Sales/schemas/eu/tables/orders/query"
    waiting = asyncio.create_task(connection.request("POST", path, AUTH))
    while not edge.services.snapshot.requests:
        await asyncio.sleep(0)
    connection.disconnect()
    with pytest.raises(ConnectionError):
        await waiting
    assert (await edge.settled()).outcome == "CLIENT_GONE"
    assert edge.services.snapshot.closed == 1
    assert edge.metrics.requests[0][2] == 499


class BrokenFiles:
    async def handle(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        raise PermissionDenied("too late to say so")


class EchoFiles:
    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self._error is not None:
            raise self._error
        return web.Response(text=f"{request.match_info['storage']} {request.match_info['path']}")


def ports_of(files: Files | None = None) -> EdgePorts:
    return EdgePorts(audit=FakeAuditLog(), metrics=FakeHttpMetrics(), files=files, clock=lambda: NOON)


def files_app(files: Files) -> web.Application:
    settings = EdgeSettings(rate_of=lambda _: Rate(requests_per_second=1, burst=1))
    return build(settings, fake_services(make_world()).stubs, ports_of(files))


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_a_long_list_is_compressed_with_its_length(coding: str) -> None:
    tables = [FakeTable(share="Sales", schema="eu", name=f"orders{number}") for number in range(100)]
    async with start_edge(world=make_world(tables=tables)) as edge:
        path = "/shares/Sales/all-tables"
        expected, reply = await edge.get(path), await edge.get(path, Accept_Encoding=coding)
    assert reply.headers["Content-Encoding"] == coding
    assert int(reply.headers["Content-Length"]) == len(reply.body) < len(expected.body)
    assert plain(reply.headers, reply.body) == expected.body
    assert reply.headers["Vary"] == expected.headers["Vary"] == "Accept-Encoding"


async def test_a_short_list_is_not_compressed(edge: Edge) -> None:
    reply = await edge.get("/shares", Accept_Encoding="gzip")
    assert json.loads(reply.body)
    assert reply.headers["Vary"] == "Accept-Encoding"


async def test_metadata_is_compressed_where_it_is_wanted(edge: Edge) -> None:
    path = "/shares/Sales/schemas/eu/tables/orders/metadata"
    reply = await edge.get(path, Accept_Encoding="gzip, identity;q=0")
    assert plain(reply.headers, reply.body) == (await edge.get(path)).body


@pytest.mark.parametrize(
    ("method", "name"), [("POST", "temporary-table-credentials"), ("GET", "aws-credentials")]
)
async def test_keys_are_never_compressed(edge: Edge, method: str, name: str) -> None:
    path = f"{BASE}/shares/Sales/schemas/eu/tables/dirs/{name}"
    headers = AUTH | {"Accept-Encoding": "gzip, identity;q=0"}
    reply = await edge.server.connect().request(method, path, headers)
    assert reply.status == 200
    assert "Content-Encoding" not in reply.headers
    assert json.loads(reply.body)


async def test_an_error_is_sent_as_it_is(edge: Edge) -> None:
    reply = await edge.get("/shares/nothing", Accept_Encoding="gzip, identity;q=0")
    assert reply.status == 404
    assert json.loads(reply.body)["errorCode"] == "RESOURCE_DOES_NOT_EXIST"
