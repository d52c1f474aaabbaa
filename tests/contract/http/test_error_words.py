"""Words in refusals that tests of official clients and servers look for: no client is to see others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each_case
from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway

INVALID = "INVALID_PARAMETER_VALUE"
LONG_AGO = "1969-12-31T23:59:59Z"


@pytest.mark.parametrize("body", [{"version": 0}, {"timestamp": "2024-01-01T00:00:00Z"}])
def test_history_that_is_not_shared(client: Client, gateway: Gateway, body: dict[str, Any]) -> None:
    message = client.query(gateway.plain, body).message()
    assert "Reading table by version or timestamp is not supported" in message


def test_two_points_in_time(client: Client, gateway: Gateway) -> None:
    answer = client.get(f"{gateway.history.path}/metadata?version=0&timestamp={LONG_AGO}")
    assert answer.error() == (400, INVALID)
    assert "Please only provide one of: version, timestamp" in answer.message()


def test_a_feed_that_is_off_names_the_table(client: Client, gateway: Gateway) -> None:
    for table in (gateway.plain, gateway.history):
        answer = client.changes(table, startingVersion=0)
        assert answer.error() == (400, INVALID)
        name = f"{table.share}.{table.schema}.{table.name}"
        assert f"cdf is not enabled on table {name}" in answer.message()


def test_a_version_before_the_first_that_is_shared(client: Client, gateway: Gateway) -> None:
    path = f"{gateway.bounded.path}/metadata?version=0"
    for answer in (client.query(gateway.bounded, {"version": 0}), client.get(path)):
        assert answer.error() == (400, INVALID)
        assert "You can only query table data since version 1" in answer.message()


@pytest.mark.smoke
def test_a_table_that_parquet_cannot_express(client: Client, gateway: Gateway) -> None:
    answer = client.query(gateway.vectors)
    assert answer.error() == (400, "UNSUPPORTED_OPERATION")
    assert "Unsupported Delta Table Properties" in answer.message()
    assert "deletionVectors" in answer.message()


def test_a_time_before_the_first_version(client: Client, gateway: Gateway) -> None:
    path = f"{gateway.history.path}/metadata?timestamp={LONG_AGO}"
    for answer in (client.query(gateway.history, {"timestamp": LONG_AGO}), client.get(path)):
        assert answer.error() == (400, INVALID)
        assert "greater than or equal to" in answer.message()


def test_a_version_after_the_latest(client: Client, gateway: Gateway) -> None:
    latest = gateway.change_feed.version
    for answer in (
        client.query(gateway.change_feed, {"version": 99}),
        client.query(gateway.change_feed, {"startingVersion": 99}),
        client.changes(gateway.change_feed, startingVersion=99),
        client.get(f"{gateway.change_feed.path}/metadata?version=99"),
    ):
        assert answer.error() == (400, INVALID)
        assert f"is after the latest available version {latest}" in answer.message()


@each_case(
    ("path", "kind"),
    [
        ("/shares/none", "share"),
        ("/shares/{share}/schemas/none/tables", "schema"),
        ("/shares/{share}/schemas/{schema}/tables/none/version", "table"),
    ],
)
def test_what_does_not_exist(client: Client, gateway: Gateway, path: str, kind: str) -> None:
    answer = client.get(path.format(share=gateway.plain.share, schema=gateway.plain.schema))
    assert answer.error() == (404, "RESOURCE_DOES_NOT_EXIST")
    message = answer.json()["message"]
    assert message.startswith(f"{kind} '")
    assert message.endswith("none' does not exist, please contact your share provider")


def test_a_location_that_is_not_the_tables(client: Client, gateway: Gateway) -> None:
    body = {"location": f"{gateway.dir_only.location}-of-another"}
    answer = client.post(f"{gateway.dir_only.path}/temporary-table-credentials", body)
    assert answer.error() == (400, INVALID)
    assert "same as or under this table's configured storage" in answer.message()


def test_a_body_that_is_not_json(client: Client, gateway: Gateway) -> None:
    answer = client.post(f"{gateway.plain.path}/query", b"{")
    assert answer.error() == (400, "MALFORMED_REQUEST")
