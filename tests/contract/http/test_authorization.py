"""REST APIs: all of them use bearer tokens."""

from __future__ import annotations

import pytest

from tests.cases import each_case
from tests.contract.http.client import Client, fetch
from tests.contract.http.facts import Gateway

_UNAUTHENTICATED = 401, "UNAUTHENTICATED"


def every_path(gateway: Gateway) -> list[tuple[str, str]]:
    table = gateway.plain
    return [
        ("GET", "/shares"),
        ("GET", f"/shares/{table.share}"),
        ("GET", f"/shares/{table.share}/schemas"),
        ("GET", f"/shares/{table.share}/schemas/{table.schema}/tables"),
        ("GET", f"/shares/{table.share}/all-tables"),
        ("GET", f"{table.path}/version"),
        ("GET", f"{table.path}/metadata"),
        ("POST", f"{table.path}/query"),
    ]


@pytest.mark.smoke
def test_every_endpoint_answers_401_to_a_missing_token(client: Client, gateway: Gateway) -> None:
    for method, path in every_path(gateway):
        answer = client.request(method, path, token="")
        assert answer.error() == _UNAUTHENTICATED, path
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.smoke
def test_every_endpoint_answers_401_to_an_unknown_token(client: Client, gateway: Gateway) -> None:
    for method, path in every_path(gateway):
        assert client.request(method, path, token="unknown").error() == _UNAUTHENTICATED, path


@pytest.mark.smoke
def test_every_endpoint_answers_403_to_a_disabled_recipient(client: Client, gateway: Gateway) -> None:
    for method, path in every_path(gateway):
        answer = client.request(method, path, token=gateway.disabled_token)
        assert answer.error() == (403, "PERMISSION_DENIED"), path


@pytest.mark.smoke
def test_an_expired_token_is_as_an_unknown_one(client: Client, gateway: Gateway) -> None:
    expired = client.get("/shares", token=gateway.expired_token)
    unknown = client.get("/shares", token="unknown")
    assert expired.error() == _UNAUTHENTICATED
    assert expired.body == unknown.body


def test_head_answers_401_without_a_body(client: Client, gateway: Gateway) -> None:
    answer = client.request("HEAD", gateway.plain.path, token="")
    assert (answer.status, answer.body) == (401, b"")


def test_the_scheme_is_case_insensitive(gateway: Gateway) -> None:
    assert fetch("GET", f"{gateway.url}/shares", {"Authorization": f"bEARER {gateway.token}"}).status == 200


# Of each kind one; tests/unit/edge/test_auth.py has more.
@each_case("value", ["", "Basic {}", "Bearer {} more"])
def test_a_malformed_authorization_header_is_401(gateway: Gateway, value: str) -> None:
    headers = {"Authorization": value.format(gateway.token)}
    assert fetch("GET", f"{gateway.url}/shares", headers).error() == _UNAUTHENTICATED


def test_a_token_is_accepted_in_the_header_only(gateway: Gateway) -> None:
    token = gateway.token
    for query, headers in (
        (f"?access_token={token}", {}),
        (f"?token={token}&bearerToken={token}", {}),
        ("", {"Cookie": f"token={token}; access_token={token}"}),
        ("", {"X-Api-Key": token}),
    ):
        assert fetch("GET", f"{gateway.url}/shares{query}", headers).error() == _UNAUTHENTICATED


def test_a_wrong_token_is_told_before_a_wrong_body(client: Client, gateway: Gateway) -> None:
    answer = client.request("POST", f"{gateway.plain.path}/query", body=b"{", token="unknown")
    assert answer.error() == _UNAUTHENTICATED
