"""List Tables in a Schema, and List all Tables in a Share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway, TableFacts

FIELDS = {"name", "schema", "share", "shareId", "id", "location", "auxiliaryLocations", "accessModes"}


def in_schema(client: Client, table: TableFacts) -> list[dict[str, Any]]:
    answer = client.get(f"/shares/{table.share}/schemas/{table.schema}/tables")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    return list(answer.json()["items"])


def in_share(client: Client, table: TableFacts) -> list[dict[str, Any]]:
    answer = client.get(f"/shares/{table.share}/all-tables")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    return list(answer.json()["items"])


@pytest.fixture(params=[in_schema, in_share], ids=["tables", "all-tables"])
def listing(request: pytest.FixtureRequest) -> Any:
    return request.param


def entry(listing: Any, client: Client, table: TableFacts) -> dict[str, Any]:
    key = table.schema, table.name
    (found,) = [item for item in listing(client, table) if (item["schema"], item["name"]) == key]
    return dict(found)


def test_name_schema_and_share(client: Client, gateway: Gateway, listing: Any) -> None:
    found = entry(listing, client, gateway.plain)
    assert (found["name"], found["schema"], found["share"]) == (
        gateway.plain.name,
        gateway.plain.schema,
        gateway.plain.share,
    )


def test_share_id(client: Client, gateway: Gateway, listing: Any) -> None:
    assert entry(listing, client, gateway.plain)["shareId"] == gateway.plain.share_id


def test_id(client: Client, gateway: Gateway, listing: Any) -> None:
    assert entry(listing, client, gateway.plain)["id"] == gateway.plain.id


def test_location(client: Client, gateway: Gateway, listing: Any) -> None:
    assert entry(listing, client, gateway.both_modes)["location"] == gateway.both_modes.location


def test_auxiliary_locations(client: Client, gateway: Gateway, listing: Any) -> None:
    found = entry(listing, client, gateway.both_modes)
    assert found.get("auxiliaryLocations", []) == list(gateway.both_modes.auxiliary_locations)


def test_access_modes(client: Client, gateway: Gateway, listing: Any) -> None:
    for table in (gateway.plain, gateway.dir_only, gateway.both_modes):
        assert entry(listing, client, table)["accessModes"] == list(table.access_modes)


def test_no_other_fields_and_none_that_is_empty(client: Client, gateway: Gateway, listing: Any) -> None:
    items = listing(client, gateway.plain)
    assert items
    for item in items:
        assert set(item) <= FIELDS
        assert all(item.values())


@pytest.mark.smoke
def test_tables_of_a_schema_are_by_name(client: Client, gateway: Gateway) -> None:
    names = [item["name"] for item in in_schema(client, gateway.plain)]
    assert names == sorted(names, key=str.lower)
    assert {item["schema"] for item in in_schema(client, gateway.plain)} == {gateway.plain.schema}


@pytest.mark.smoke
def test_all_tables_are_by_schema_and_name(client: Client, gateway: Gateway) -> None:
    keys = [(item["schema"].lower(), item["name"].lower()) for item in in_share(client, gateway.plain)]
    assert keys == sorted(keys)
    assert len({schema for schema, _ in keys}) > 1


def test_names_are_case_insensitive(client: Client, gateway: Gateway) -> None:
    share, schema = gateway.plain.share, gateway.plain.schema
    for path in (f"/shares/{share}/schemas/{schema}/tables", f"/shares/{share}/all-tables"):
        swapped = path.replace(share, share.swapcase()).replace(f"/{schema}/", f"/{schema.swapcase()}/")
        assert client.get(swapped).body == client.get(path).body


def test_404_for_what_does_not_exist_or_is_not_granted(client: Client, gateway: Gateway) -> None:
    for path in (
        "/shares/nowhere/schemas/none/tables",
        f"/shares/{gateway.plain.share}/schemas/none/tables",
        f"/shares/{gateway.hidden.share}/schemas/{gateway.hidden.schema}/tables",
        "/shares/nowhere/all-tables",
        f"/shares/{gateway.hidden.share}/all-tables",
    ):
        assert client.get(path).error() == (404, "RESOURCE_DOES_NOT_EXIST"), path
