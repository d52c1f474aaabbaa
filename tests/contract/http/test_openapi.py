"""The OpenAPI document and the running server agree."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.components import SCHEMATHESIS
from tests.contract.http.client import Client, fetch
from tests.contract.http.facts import Gateway

pytestmark = pytest.mark.component(SCHEMATHESIS)

METHODS = {"get", "head", "post", "put", "patch", "delete"}
# What a client may do wrong is told by the status; the document says what each looks like.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def document(client: Client) -> dict[str, Any]:
    return dict(client.get("/openapi.json", token="").json())


@pytest.fixture
def api(gateway: Gateway) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{gateway.url}/openapi.json")


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@EXAMPLES
def test_whatever_the_document_allows_or_forbids_is_answered_as_it_says(
    case: schemathesis.Case, gateway: Gateway
) -> None:
    headers = {"Authorization": f"Bearer {gateway.token}"}
    case.call_and_validate(base_url=gateway.url, headers=headers, checks=[*CHECKS, negative_data_rejection])


@schema.parametrize()
@EXAMPLES
def test_the_same_of_a_table_that_exists(case: schemathesis.Case, gateway: Gateway) -> None:
    table = gateway.history
    names = {"share": table.share, "schema": table.schema, "table": table.name}
    case.path_parameters.update({name: names[name] for name in case.path_parameters if name in names})
    headers = {"Authorization": f"Bearer {gateway.token}"}
    case.call_and_validate(base_url=gateway.url, headers=headers, checks=CHECKS)


@schema.parametrize()
@EXAMPLES
def test_nothing_is_answered_to_a_client_without_a_token(case: schemathesis.Case, gateway: Gateway) -> None:
    case.headers.pop("Authorization", None)
    response = case.call(base_url=gateway.url)
    case.validate_response(response, checks=CHECKS)
    if case.operation.definition.raw.get("security") != []:
        assert response.status_code == 401


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
    }
    for path, item in document["paths"].items():
        if path.startswith("/files/") and not gateway.serves_files:
            continue
        for method in METHODS & set(item):
            answer = client.request(method.upper(), path.format(**names))
            assert answer.status not in {404, 405}, f"{method} {path}"


def test_every_route_of_the_server_is_in_the_document(
    client: Client, gateway: Gateway, document: dict[str, Any]
) -> None:
    names = {"share": "x", "schema": "x", "table": "x", "storage": "x", "path": "x"}
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
