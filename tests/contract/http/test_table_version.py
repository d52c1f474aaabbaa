"""Query Table Version: GET …/tables/{table}/version, and the deprecated HEAD …/tables/{table}."""

from __future__ import annotations

import pytest

from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway, TableFacts


def by_get(client: Client, table: TableFacts, query: str = "") -> Answer:
    return client.get(f"{table.path}/version{query}")


def by_head(client: Client, table: TableFacts, query: str = "") -> Answer:
    return client.request("HEAD", f"{table.path}{query}")


@pytest.fixture(params=[by_get, by_head], ids=["get", "head"])
def ask(request: pytest.FixtureRequest):
    return request.param


@pytest.mark.smoke
def test_delta_table_version(client: Client, gateway: Gateway, ask) -> None:
    for table in (gateway.plain, gateway.history, gateway.dir_only):
        answer = ask(client, table)
        assert answer.status == 200
        assert answer.headers["Delta-Table-Version"] == str(table.version)


def test_the_body_is_empty(client: Client, gateway: Gateway, ask) -> None:
    assert ask(client, gateway.plain).body == b""


def test_names_are_case_insensitive(client: Client, gateway: Gateway) -> None:
    answer = client.get(
        f"{gateway.plain.path}/version".replace(gateway.plain.name, gateway.plain.name.upper())
    )
    assert answer.headers["Delta-Table-Version"] == str(gateway.plain.version)


def test_starting_timestamp_before_the_first_version(client: Client, gateway: Gateway, ask) -> None:
    answer = ask(client, gateway.history, "?startingTimestamp=2000-01-01T00:00:00Z")
    assert answer.status == 200
    assert 0 <= int(answer.headers["Delta-Table-Version"]) <= gateway.history.version


def test_starting_timestamp_may_be_percent_encoded(client: Client, gateway: Gateway, ask) -> None:
    plain = ask(client, gateway.history, "?startingTimestamp=2000-01-01T00:00:00Z")
    encoded = ask(client, gateway.history, "?startingTimestamp=2000-01-01T00%3A00%3A00Z")
    assert encoded.headers["Delta-Table-Version"] == plain.headers["Delta-Table-Version"]


@pytest.mark.parametrize("value", ["", "yesterday"])
def test_starting_timestamp_that_is_none_is_400(client: Client, gateway: Gateway, value: str) -> None:
    answer = by_get(client, gateway.history, f"?startingTimestamp={value}")
    assert answer.error() == (400, "INVALID_PARAMETER_VALUE")


def test_404_for_what_does_not_exist_or_is_not_granted(client: Client, gateway: Gateway, ask) -> None:
    missing = f"{gateway.plain.path}-none/version"
    assert client.get(missing).error() == (404, "RESOURCE_DOES_NOT_EXIST")
    assert ask(client, gateway.hidden).status == 404


@pytest.mark.smoke
def test_a_table_that_is_not_granted_is_as_one_that_does_not_exist(client: Client, gateway: Gateway) -> None:
    hidden = by_get(client, gateway.hidden)
    missing = client.get(f"{gateway.hidden.path.replace(gateway.hidden.share, 'nowhere')}/version")
    assert hidden.body.replace(gateway.hidden.share.encode(), b"nowhere") == missing.body
