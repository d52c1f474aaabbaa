"""The fileidhash header of query."""

from __future__ import annotations

import pytest

from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway


def ask(client: Client, gateway: Gateway, **headers: str) -> Answer:
    return client.post(f"{gateway.plain.path}/query", headers=headers)


def ids(answer: Answer) -> list[str]:
    assert answer.status == 200
    return [line["file"]["id"] for line in answer.lines()[2:]]


@pytest.mark.parametrize("value", ["parquet", "Delta"])
def test_fileidhash_is_case_insensitive_and_echoed_in_lower_case(
    client: Client, gateway: Gateway, value: str
) -> None:
    answer = ask(client, gateway, fileidhash=value)
    assert answer.headers["fileidhash"] == value.lower()
    assert len(ids(answer)) == gateway.plain.files


def test_fileidhash_is_not_echoed_to_a_client_that_did_not_send_it(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway).headers["fileidhash"] is None


def test_ids_without_the_header_are_those_of_parquet(client: Client, gateway: Gateway) -> None:
    assert ids(ask(client, gateway)) == ids(ask(client, gateway, fileidhash="parquet"))


def test_ids_of_the_two_schemes_differ(client: Client, gateway: Gateway) -> None:
    assert set(ids(ask(client, gateway))).isdisjoint(ids(ask(client, gateway, fileidhash="delta")))


def test_fileidhash_of_another_value_is_400(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway, fileidhash="md5").error() == (400, "INVALID_PARAMETER_VALUE")
