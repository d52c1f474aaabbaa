"""List Shares: GET {prefix}/shares."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway


def described(client: Client, gateway: Gateway) -> dict[str, Any]:
    (found,) = [
        item for item in client.get("/shares").json()["items"] if item["name"] == gateway.described.name
    ]
    return dict(found)


def test_content_type(client: Client) -> None:
    answer = client.get("/shares")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"


@pytest.mark.smoke
def test_items_are_the_granted_shares_by_name(client: Client, gateway: Gateway) -> None:
    assert [item["name"] for item in client.get("/shares").json()["items"]] == list(gateway.shares)


def test_id(client: Client, gateway: Gateway) -> None:
    assert described(client, gateway)["id"] == gateway.described.id


def test_display_name(client: Client, gateway: Gateway) -> None:
    assert described(client, gateway)["displayName"] == gateway.described.display_name


def test_comment(client: Client, gateway: Gateway) -> None:
    assert described(client, gateway)["comment"] == gateway.described.comment


def test_properties(client: Client, gateway: Gateway) -> None:
    assert described(client, gateway)["properties"] == dict(gateway.described.properties)


def test_fields_that_a_share_does_not_have_are_absent(client: Client, gateway: Gateway) -> None:
    items = client.get("/shares").json()["items"]
    assert items
    for item in items:
        assert set(item) <= {"name", "id", "displayName", "comment", "properties"}
        assert all(item.values())


def test_next_page_token_is_absent_at_the_end(client: Client) -> None:
    assert "nextPageToken" not in client.get("/shares").json()


def test_the_answer_is_one_line_of_ascii(client: Client) -> None:
    body = client.get("/shares").body
    assert body.isascii()
    assert len(body.decode().splitlines()) == 1


@pytest.mark.parametrize("capabilities", ["responseformat=delta;readerfeatures=deletionvectors", "nonsense"])
def test_capabilities_do_not_matter_here(client: Client, capabilities: str) -> None:
    plain = client.get("/shares")
    assert client.get("/shares", {"delta-sharing-capabilities": capabilities}).body == plain.body
