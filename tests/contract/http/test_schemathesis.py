"""The running server answers as the OpenAPI document says, whatever it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateway.edge.documentation import load_document
from tests.components import SCHEMATHESIS
from tests.contract.http.facts import Gateway, TableFacts

pytestmark = [pytest.mark.component(SCHEMATHESIS), pytest.mark.slow]

METHODS = {"get", "head", "post", "put", "patch", "delete"}
# Not whether every request that the document forbids is refused: the protocol wants much of that ignored.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# The operations of the protocol; the others need no token, and take nothing.
OPERATIONS = [
    (path, method)
    for path, item in load_document()["paths"].items()
    for method in item
    if method in METHODS and item[method].get("security") != []
]
# With the tables to try: where the path names a share or a schema alone, both tables give the same request.
ON_TABLES = [
    (operation, kind)
    for operation in OPERATIONS
    for kind in ("history", "both_modes")
    if "{table}" in operation[0] or ("{share}" in operation[0] and kind == "history")
]
EXAMPLES = settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def api(gateway: Gateway) -> Any:
    return schemathesis.openapi.from_url(f"{gateway.url}/openapi.json")


def explore(api: Any, operation: tuple[str, str], mode: GenerationMode, act: Callable[[Any], None]) -> None:
    """Do something with many requests that the document allows, or forbids."""
    path, method = operation
    strategy = api[path][method].as_strategy(generation_mode=mode)
    EXAMPLES(given(case=strategy)(act))()


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_whatever_the_document_allows_or_forbids_is_answered_as_it_says(
    api: Any, gateway: Gateway, operation: tuple[str, str], mode: GenerationMode
) -> None:
    headers = {"Authorization": f"Bearer {gateway.token}"}

    def act(case: Any) -> None:
        case.call_and_validate(base_url=gateway.url, headers=headers, checks=CHECKS)

    explore(api, operation, mode, act)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(
    ("operation", "kind"), ON_TABLES, ids=[" ".join((*operation, kind)) for operation, kind in ON_TABLES]
)
def test_the_same_of_a_table_that_exists(
    api: Any, gateway: Gateway, operation: tuple[str, str], mode: GenerationMode, kind: str
) -> None:
    table: TableFacts = getattr(gateway, kind)
    names = {"share": table.share, "schema": table.schema, "table": table.name}
    headers = {"Authorization": f"Bearer {gateway.token}"}

    def act(case: Any) -> None:
        case.path_parameters = {
            name: names.get(name, value) for name, value in (case.path_parameters or {}).items()
        }
        case.call_and_validate(base_url=gateway.url, headers=headers, checks=CHECKS)

    explore(api, operation, mode, act)


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_nothing_is_answered_to_a_client_without_a_token(
    api: Any, gateway: Gateway, operation: tuple[str, str]
) -> None:
    def act(case: Any) -> None:
        case.headers.pop("Authorization", None)
        response = case.call(base_url=gateway.url)
        case.validate_response(response, checks=CHECKS)
        assert response.status_code == 401

    explore(api, operation, GenerationMode.POSITIVE, act)
