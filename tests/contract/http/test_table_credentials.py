"""Generate Temporary Table Credential: POST …/tables/{table}/temporary-table-credentials."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.cases import each_case
from tests.contract.http.client import Answer, Client, fetch
from tests.contract.http.facts import Gateway, TableFacts


def ask(client: Client, table: TableFacts, body: bytes | dict[str, Any] = b"{}") -> Answer:
    return client.post(f"{table.path}/temporary-table-credentials", body)


def test_content_type_and_cache_control(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.dir_only)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_body_is_one_line_of_ascii(client: Client, gateway: Gateway) -> None:
    body = ask(client, gateway.dir_only).body
    assert body.isascii()
    assert len(body.splitlines()) == 1


@pytest.mark.smoke
def test_there_is_one_credential_and_it_is_whole(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.dir_only).json()
    assert set(answer) == {"credentials"}
    assert set(answer["credentials"]) == {"location", "awsTempCredentials", "expirationTime"}
    keys = answer["credentials"]["awsTempCredentials"]
    assert set(keys) == {"accessKeyId", "secretAccessKey", "sessionToken", "region", "endpoint"}
    assert all(keys.values())


def test_location_is_the_tables_own_where_none_was_asked_for(client: Client, gateway: Gateway) -> None:
    for table in (gateway.dir_only, gateway.both_modes):
        assert ask(client, table).json()["credentials"]["location"] == table.location


def test_expiration_time_is_in_the_future_in_milliseconds(client: Client, gateway: Gateway) -> None:
    expires = ask(client, gateway.dir_only).json()["credentials"]["expirationTime"]
    assert isinstance(expires, int)
    assert expires > (time.time() + 20 * 60) * 1000


@pytest.mark.parametrize(("field", "slash"), [("location", ""), ("auxiliaryLocation", "/")])
def test_each_location_has_a_credential_of_its_own(
    client: Client, gateway: Gateway, field: str, slash: str
) -> None:
    table = gateway.both_modes
    for location in (table.location, *table.auxiliary_locations):
        answer = ask(client, table, {field: location + slash})
        assert answer.json()["credentials"]["location"] == location


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (None, {}),
        (b'{"location":null,"unknown":{"a":[1]}}', {"Content-Type": "application/json"}),
    ],
)
def test_body_may_be_empty_or_an_object_with_unknown_fields(
    gateway: Gateway, body: bytes | None, headers: dict[str, str]
) -> None:
    headers = {"Authorization": f"Bearer {gateway.token}", **headers}
    answer = fetch("POST", f"{gateway.url}{gateway.dir_only.path}/temporary-table-credentials", headers, body)
    assert answer.json()["credentials"]["location"] == gateway.dir_only.location


@each_case(
    # Of each kind one; tests/unit/edge/handlers/test_credentials.py has more.
    "body",
    [b"[]", b"{", b'{"location":1}', b'{"location":"x","location":"y"}'],
)
def test_body_that_is_malformed_is_400(client: Client, gateway: Gateway, body: bytes) -> None:
    assert ask(client, gateway.dir_only, body).error() == (400, "MALFORMED_REQUEST")


def test_a_location_in_the_query_is_400(client: Client, gateway: Gateway) -> None:
    path = f"{gateway.both_modes.path}/temporary-table-credentials?location=x"
    assert client.post(path).error() == (400, "INVALID_PARAMETER_VALUE")


def test_two_locations_are_400(client: Client, gateway: Gateway) -> None:
    table = gateway.both_modes
    body = {"location": table.location, "auxiliaryLocation": table.auxiliary_locations[0]}
    assert ask(client, table, body).error() == (400, "INVALID_PARAMETER_VALUE")


@pytest.mark.smoke
def test_a_location_that_is_not_advertised_is_400(client: Client, gateway: Gateway) -> None:
    own = gateway.both_modes.location
    above = own.rpartition("/")[0]
    for location in (
        "",
        above,
        f"{own}/below",
        f"{own}//",
        f"{own}2",
        f"{own}/../{gateway.hidden.name}",
        f"{own}/%2e%2e/{gateway.hidden.name}",
        own.replace("/", "//"),
        own.upper(),
        f"s3a://{own.partition('://')[2]}",
        gateway.hidden.location,
        gateway.dir_only.location,
    ):
        answer = ask(client, gateway.both_modes, {"location": location})
        assert answer.error() == (400, "INVALID_PARAMETER_VALUE"), location
        assert "same as or under this table's configured storage" in answer.json()["message"]
        assert own in answer.json()["message"]


def test_a_table_without_dir_access_is_400_and_says_so(client: Client, gateway: Gateway) -> None:
    for table in (gateway.plain, gateway.history):
        answer = ask(client, table)
        assert answer.error() == (400, "UNSUPPORTED_OPERATION")
        assert " dir " in answer.json()["message"]


@pytest.mark.smoke
@pytest.mark.parametrize("body", [b"{}", b"{"])
def test_404_for_what_does_not_exist_or_is_not_granted_whatever_the_body(
    client: Client, gateway: Gateway, body: bytes
) -> None:
    missing = client.post(f"{gateway.hidden.path}-none/temporary-table-credentials", body)
    hidden = ask(client, gateway.hidden, body)
    assert missing.error() == hidden.error() == (404, "RESOURCE_DOES_NOT_EXIST")
    assert missing.body.replace(b"-none", b"") == hidden.body


@pytest.mark.smoke
def test_401_and_403(client: Client, gateway: Gateway) -> None:
    path = f"{gateway.dir_only.path}/temporary-table-credentials"
    for token, status in (("", 401), (gateway.expired_token, 401), (gateway.disabled_token, 403)):
        assert client.request("POST", path, token=token).error()[0] == status
