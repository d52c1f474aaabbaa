"""The OpenAPI document and the running server agree on what there is."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.edge.documentation import load_document
from tests.contract.http.client import Client, fetch
from tests.contract.http.facts import Gateway

METHODS = {"get", "head", "post", "put", "patch", "delete"}


@pytest.fixture
def document(client: Client) -> dict[str, Any]:
    return dict(client.get("/openapi.json", token="").json())


@pytest.mark.smoke
def test_every_route_of_the_document_exists(
    client: Client, gateway: Gateway, document: dict[str, Any]
) -> None:
    table = gateway.plain
    names = {
        "share": table.share,
        "schema": table.schema,
        "table": table.name,
        "storage": "none",
        "path": "x",
        "queryId": "none",
    }
    for path, item in document["paths"].items():
        if path.startswith("/files/") and not gateway.serves_files:
            continue
        for method in METHODS & set(item):
            answer = client.request(method.upper(), path.format(**names))
            if path.endswith("{queryId}"):
                # There is no such query, which only its route can say.
                assert "the query does not exist" in answer.json()["message"]
                continue
            assert answer.status not in {404, 405}, f"{method} {path}"


def test_the_document_is_the_packages_own_but_for_its_server(document: dict[str, Any]) -> None:
    assert document == load_document() | {"servers": document["servers"]}


def test_every_route_of_the_server_is_in_the_document(
    client: Client, gateway: Gateway, document: dict[str, Any]
) -> None:
    names = dict.fromkeys(("share", "schema", "table", "storage", "path", "queryId"), "x")
    for path, item in document["paths"].items():
        if path.startswith("/files/") and not gateway.serves_files:
            continue
        answer = client.request("TRACE", path.format(**names))
        assert answer.status == 405
        assert set(answer.headers["Allow"].lower().split(",")) == METHODS & set(item), path


def test_the_server_of_the_document_is_this_one(
    client: Client, gateway: Gateway, document: dict[str, Any]
) -> None:
    (server,) = document["servers"]
    assert gateway.url.endswith(server["url"])


def test_the_page_and_the_document_need_no_token(gateway: Gateway) -> None:
    page = fetch("GET", f"{gateway.url}/docs", {})
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert (
        fetch("GET", f"{gateway.url}/openapi.json", {}).headers["Content-Type"].startswith("application/json")
    )


def test_every_error_code_of_the_document_is_one_of_ours(document: dict[str, Any]) -> None:
    described = document["components"]["schemas"]["Error"]["properties"]["errorCode"]["description"]
    for code in ("INVALID_PARAMETER_VALUE", "MALFORMED_REQUEST", "UNSUPPORTED_OPERATION", "INTERNAL_ERROR"):
        assert f"`{code}`" in described
