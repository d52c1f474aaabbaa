"""The running server answers as the OpenAPI document says, whatever it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation.case import Case
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


@cache
def cases(operation: tuple[str, str], mode: GenerationMode) -> list[Case[Any]]:
    """Return requests that the document allows, or forbids.

    Generating them takes far longer than sending them: they are generated once, for every table, with and
    without a token, and for every deployment.
    """
    path, method = operation
    found: list[Case[Any]] = []

    def keep(case: Case[Any]) -> None:
        found.append(case)

    strategy = schemathesis.openapi.from_dict(load_document())[path][method].as_strategy(generation_mode=mode)
    EXAMPLES(given(case=strategy)(keep))()
    assert len(found) == EXAMPLES.max_examples
    return found


def send_all(requests: Iterable[Case[Any]], send: Callable[[Case[Any]], None]) -> None:
    """Send each request, and report every response that is not as the document says."""
    failures: list[BaseException] = []
    for case in requests:
        try:
            # A copy, since sending and the tests change a case.
            send(case.derive())
        except (Failure, FailureGroup) as failure:
            failures.append(failure)
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} responses are not as the document says", failures)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_whatever_the_document_allows_or_forbids_is_answered_as_it_says(
    gateway: Gateway, operation: tuple[str, str], mode: GenerationMode
) -> None:
    headers = {"Authorization": f"Bearer {gateway.token}"}

    def send(case: Case[Any]) -> None:
        case.call_and_validate(base_url=gateway.url, headers=headers, checks=CHECKS)

    send_all(cases(operation, mode), send)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(
    ("operation", "kind"), ON_TABLES, ids=[" ".join((*operation, kind)) for operation, kind in ON_TABLES]
)
def test_the_same_of_a_table_that_exists(
    gateway: Gateway, operation: tuple[str, str], mode: GenerationMode, kind: str
) -> None:
    table: TableFacts = getattr(gateway, kind)
    names = {"share": table.share, "schema": table.schema, "table": table.name}
    headers = {"Authorization": f"Bearer {gateway.token}"}

    def send(case: Case[Any]) -> None:
        case.path_parameters = {
            name: names.get(name, value) for name, value in (case.path_parameters or {}).items()
        }
        case.call_and_validate(base_url=gateway.url, headers=headers, checks=CHECKS)

    send_all(cases(operation, mode), send)


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_nothing_is_answered_to_a_client_without_a_token(
    gateway: Gateway, operation: tuple[str, str]
) -> None:
    others: dict[str, int] = {}

    def send(case: Case[Any]) -> None:
        case.headers.pop("Authorization", None)
        response = case.call(base_url=gateway.url)
        if response.status_code != 401:
            others[case.as_curl_command()] = response.status_code
        case.validate_response(response, checks=CHECKS)

    send_all(cases(operation, GenerationMode.POSITIVE), send)
    assert others == {}
