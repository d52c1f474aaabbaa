from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest

from gateway.edge.documentation import load_document
from tests.unit.edge.conftest import BASE, Edge, start_edge


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in references(item)]
    if isinstance(value, list):
        return [found for item in value for found in references(item)]
    return []


def test_every_reference_of_the_document_leads_somewhere_and_every_component_is_used() -> None:
    document = load_document()
    used = set(references(document))
    for reference in used:
        found: Any = document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
    formats = {f"{prefix}{name}Line" for prefix in ("", "Delta") for name in ("Protocol", "Metadata", "File")}
    lines = formats | {"ChangeLine", "EndStreamLine", "QueryStatusLine"}
    for kind in ("parameters", "headers", "responses", "schemas"):
        for name in document["components"][kind]:
            assert f"#/components/{kind}/{name}" in used or name in lines, name


def test_operations_have_ids_of_their_own() -> None:
    ids = [
        operation["operationId"]
        for path in load_document()["paths"].values()
        for method, operation in path.items()
        if method != "parameters"
    ]
    assert len(ids) == len(set(ids))


async def test_the_document_needs_no_token_and_names_the_server() -> None:
    async with start_edge(public_url="https://share.example.com/delta-sharing/") as edge:
        reply = await edge.server.get(f"{BASE}/openapi.json")
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert json.loads(reply.body)["servers"] == [{"url": "https://share.example.com/delta-sharing"}]


@pytest.mark.parametrize(("prefix", "url"), [("/other/prefix/", "/other/prefix"), ("", "/")])
async def test_without_a_public_url_the_server_is_where_the_document_is(prefix: str, url: str) -> None:
    async with start_edge(prefix=prefix) as edge:
        reply = await edge.server.get(f"{url.rstrip('/')}/openapi.json")
    assert json.loads(reply.body)["servers"] == [{"url": url}]


async def test_the_page_runs_its_own_script_and_nothing_else(edge: Edge) -> None:
    reply = await edge.server.get(f"{BASE}/docs")
    policy, page = reply.headers["Content-Security-Policy"], reply.body.decode()
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert reply.headers["X-Frame-Options"] == "DENY"
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"


async def test_the_page_loads_nothing_from_elsewhere_and_keeps_the_token_nowhere(edge: Edge) -> None:
    page = (await edge.server.get(f"{BASE}/docs")).body.decode()
    assert not re.search(r"(src|href)=.?(https?:)?//", page)
    for forbidden in ("localStorage", "sessionStorage", "cookie", "innerHTML", "style="):
        assert forbidden not in page
