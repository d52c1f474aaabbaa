"""Get Share: GET {prefix}/shares/{share}."""

from __future__ import annotations

import pytest

from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway


@pytest.mark.smoke
def test_share_with_all_its_fields(client: Client, gateway: Gateway) -> None:
    answer = client.get(f"/shares/{gateway.described.name}")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json() == {
        "share": {
            "name": gateway.described.name,
            "id": gateway.described.id,
            "displayName": gateway.described.display_name,
            "comment": gateway.described.comment,
            "properties": dict(gateway.described.properties),
        }
    }


def test_the_name_is_case_insensitive_and_answered_as_it_was_configured(
    client: Client, gateway: Gateway
) -> None:
    answer = client.get(f"/shares/{gateway.described.name.swapcase()}")
    assert answer.json()["share"]["name"] == gateway.described.name


def test_404_for_a_share_that_does_not_exist(client: Client) -> None:
    assert client.get("/shares/nowhere").error() == (404, "RESOURCE_DOES_NOT_EXIST")


@pytest.mark.smoke
def test_a_share_that_is_not_granted_is_as_one_that_does_not_exist(client: Client, gateway: Gateway) -> None:
    hidden = client.get(f"/shares/{gateway.hidden.share}")
    missing = client.get("/shares/nowhere")
    assert hidden.error() == (404, "RESOURCE_DOES_NOT_EXIST")
    assert hidden.body.replace(gateway.hidden.share.encode(), b"nowhere") == missing.body
