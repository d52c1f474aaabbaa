"""The metrics port as a scraper and an orchestrator meet it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from aiohttp import ClientConnectionError, ClientSession
from prometheus_client.parser import text_string_to_metric_families

from gateway.adapters.metrics import PrometheusMetrics
from gateway.adapters.ops_server import serve_ops
from gateway.errors import Unavailable


async def nothing_needed() -> Mapping[str, str]:
    return {}


async def test_the_server_listens_until_its_block_is_left():
    registry = PrometheusMetrics(version="1.2.3").registry
    async with ClientSession() as session:
        async with serve_ops("127.0.0.1:0", registry, nothing_needed) as server:
            assert server.address.startswith("127.0.0.1:")
            async with session.get(f"http://{server.address}/readyz") as answer:
                assert answer.status == 200
            async with session.get(f"http://{server.address}/metrics") as answer:
                families = {family.name for family in text_string_to_metric_families(await answer.text())}
            address = server.address
        assert {"sluice_build_info", "sluice_http_requests", "sluice_audit_backlog_bytes"} <= families
        with pytest.raises(ClientConnectionError):
            await session.get(f"http://{address}/healthz")


async def test_a_taken_port_is_a_clear_error():
    registry = PrometheusMetrics(version="1.2.3").registry
    async with serve_ops("127.0.0.1:0", registry, nothing_needed) as first:
        with pytest.raises(Unavailable, match=f"{first.address} is taken by another program"):
            async with serve_ops(first.address, registry, nothing_needed):
                pass


async def test_an_address_of_another_machine_is_a_clear_error():
    registry = PrometheusMetrics(version="1.2.3").registry
    with pytest.raises(Unavailable, match=r"cannot listen on 192\.0\.2\.1:0"):
        async with serve_ops("192.0.2.1:0", registry, nothing_needed):
            pass


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/1.1\r\nBad Header\r\n\r\n",
        b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_in_json_without_a_banner(request_bytes):
    registry = PrometheusMetrics(version="1.2.3").registry
    async with serve_ops("127.0.0.1:0", registry, nothing_needed) as server:
        host, _, port = server.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request_bytes)
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.0 400 Bad Request\r\n")
    assert answer.endswith(b'{"status": "Bad Request"}\n')
    assert b"aiohttp" not in answer


async def test_a_connection_that_is_kept_alive_does_not_delay_the_end():
    registry = PrometheusMetrics(version="1.2.3").registry
    async with (
        asyncio.timeout(60),
        ClientSession() as session,
        serve_ops("127.0.0.1:0", registry, nothing_needed) as server,
        session.get(f"http://{server.address}/healthz") as answer,
    ):
        assert await answer.read()
