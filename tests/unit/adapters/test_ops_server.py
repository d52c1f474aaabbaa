from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import ClientSession, UnixConnector, web

from gateway.adapters.metrics import PrometheusMetrics
from gateway.adapters.ops_server import OpsServer, parse_listen
from gateway.errors import InvalidArgument
from tests.cases import each_case


class Services:
    """What the needed services answer."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {"catalog": "ok", "snapshot": "ok"}
        self.error: Exception | None = None
        self.hang = False

    async def ready(self) -> Mapping[str, str]:
        if self.hang:
            await asyncio.Event().wait()
        if self.error:
            raise self.error
        return self.states


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
def server(services: Services) -> OpsServer:
    registry = PrometheusMetrics(version="1.2.3").registry
    return OpsServer(registry, services.ready, timeout=timedelta(minutes=1))


@asynccontextmanager
async def serving(server: OpsServer, socket: Path) -> AsyncIterator[ClientSession]:
    runner = web.AppRunner(server.app(), access_log=None)
    await runner.setup()
    await web.UnixSite(runner, str(socket)).start()
    async with ClientSession("http://ops", connector=UnixConnector(str(socket))) as session:
        yield session
    await runner.cleanup()


@pytest.fixture
async def client(server: OpsServer, tmp_path: Path) -> AsyncIterator[ClientSession]:
    async with serving(server, tmp_path / "ops") as session:
        yield session


async def test_a_service_that_can_be_done_without_is_named_and_no_reason_to_be_left_alone(services, tmp_path):
    services.states["vending"] = "does not answer"
    registry = PrometheusMetrics(version="1.2.3").registry
    server = OpsServer(registry, services.ready, missing=lambda _: ())
    async with serving(server, tmp_path / "ops") as session, session.get("/readyz") as answer:
        assert answer.status == 200
        assert (await answer.json())["status"] == "without vending"


async def test_the_root_lists_what_there_is_in_plain_text(client):
    async with client.get("/") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/plain"
        listed = [line.split()[0] for line in (await answer.text()).splitlines()]
    assert listed == ["/metrics", "/healthz", "/readyz"]
    for path in listed:
        async with client.get(path) as found:
            assert found.status == 200


async def test_metrics_are_in_the_text_format(client):
    async with client.get("/metrics") as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'sluice_build_info{python="' in await answer.text()


async def test_metrics_are_in_openmetrics_for_those_who_ask(client):
    headers = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;q=0.1"}
    async with client.get("/metrics", headers=headers) as answer:
        assert answer.content_type == "application/openmetrics-text"
        assert (await answer.text()).endswith("# EOF\n")


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text;version=x.y", "text/plain;version=", ";;,=,"]
)
async def test_metrics_survive_a_strange_accept_header(client, accept):
    async with client.get("/metrics", headers={"Accept": accept}) as answer:
        assert answer.status == 200
        assert b"sluice_build_info" in await answer.read()


async def test_health_is_ok_while_the_loop_turns(client, services):
    services.error = RuntimeError("the catalog is gone")
    async with client.get("/healthz") as answer:
        assert answer.status == 200
        assert await answer.json() == {"status": "ok"}


async def test_ready_when_all_services_answer(client):
    async with client.get("/readyz") as answer:
        assert answer.status == 200
        assert await answer.json() == {"status": "ok", "services": {"catalog": "ok", "snapshot": "ok"}}


async def test_not_ready_names_the_services_that_do_not_answer(client, services):
    services.states = {"catalog": "ok", "vending": "connection refused", "presign": "deadline exceeded"}
    async with client.get("/readyz") as answer:
        assert answer.status == 503
        body = await answer.json()
    assert body["status"] == "not ready: presign, vending"
    assert body["services"]["vending"] == "connection refused"


async def test_not_ready_when_the_check_fails_without_telling_how(client, services):
    services.error = RuntimeError("password=hunter2")
    async with client.get("/readyz") as answer:
        assert answer.status == 503
        assert "hunter2" not in await answer.text()


async def test_not_ready_when_the_check_takes_too_long(services, tmp_path):
    services.hang = True
    registry = PrometheusMetrics(version="1.2.3").registry
    server = OpsServer(registry, services.ready, timeout=timedelta(milliseconds=20))
    async with serving(server, tmp_path / "ops") as client, client.get("/readyz") as answer:
        assert answer.status == 503
        assert "too long" in (await answer.json())["status"]


async def test_not_ready_but_healthy_while_shutting_down(client, server):
    server.drain()
    async with client.get("/readyz") as answer:
        assert answer.status == 503
        assert (await answer.json())["status"] == "shutting down"
    async with client.get("/healthz") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/index.html", "/admin", "/metrics/x"])
async def test_an_unknown_path_is_404_in_json(client, path):
    async with client.get(path) as answer:
        assert answer.status == 404
        assert await answer.json() == {"status": "Not Found"}


async def test_a_method_that_is_not_allowed_names_the_ones_that_are(client):
    async with client.post("/metrics") as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET,HEAD"
        assert answer.content_type == "application/json"


async def test_head_is_answered(client):
    async with client.head("/healthz") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/nothing"])
async def test_no_answer_has_a_banner(client, path):
    async with client.get(path) as answer:
        assert "Server" not in answer.headers
        assert answer.headers["Cache-Control"] == "no-store"


@each_case(
    ("text", "expected"),
    [
        ("127.0.0.1:9401", ("127.0.0.1", 9401)),
        ("[::1]:9401", ("::1", 9401)),
        (":9401", ("", 9401)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_an_address_has_a_host_and_a_port(text, expected):
    assert parse_listen(text) == expected


@each_case("text", ["", "9401", "host", "host:", "host:x", "::1:9401", "h:70000", "h:1\n", "[x]:1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(InvalidArgument, match="address to listen on"):
        parse_listen(text)
