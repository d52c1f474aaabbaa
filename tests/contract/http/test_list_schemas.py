"""List Schemas in a Share: GET {prefix}/shares/{share}/schemas."""

from __future__ import annotations

import pytest

from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway


@pytest.mark.smoke
def test_items_have_name_and_share(client: Client, gateway: Gateway) -> None:
    answer = client.get(f"/shares/{gateway.plain.share}/schemas")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    items = answer.json()["items"]
    assert {"name": gateway.plain.schema, "share": gateway.plain.share} in items
    assert all(set(item) == {"name", "share"} for item in items)
    assert [item["name"] for item in items] == sorted(item["name"] for item in items)


def test_the_share_is_case_insensitive(client: Client, gateway: Gateway) -> None:
    share = gateway.plain.share
    assert (
        client.get(f"/shares/{share.swapcase()}/schemas").body == client.get(f"/shares/{share}/schemas").body
    )


@pytest.mark.smoke
def test_404_for_a_share_that_does_not_exist_or_is_not_granted(client: Client, gateway: Gateway) -> None:
    for share in ("nowhere", gateway.hidden.share):
        assert client.get(f"/shares/{share}/schemas").error() == (404, "RESOURCE_DOES_NOT_EXIST")
