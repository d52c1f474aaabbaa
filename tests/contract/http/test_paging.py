"""maxResults, pageToken and nextPageToken of the four lists."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway

LISTS = {
    "shares": "/shares",
    "schemas": "/shares/{share}/schemas",
    "tables": "/shares/{share}/schemas/{schema}/tables",
    "all-tables": "/shares/{share}/all-tables",
}


@pytest.fixture(params=LISTS, ids=str)
def path(request: pytest.FixtureRequest, gateway: Gateway) -> str:
    return LISTS[request.param].format(share=gateway.plain.share, schema=gateway.plain.schema)


def walk(client: Client, path: str, size: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    for _ in range(100):
        page = client.get(f"{path}?maxResults={size}" + (f"&pageToken={token}" if token else "")).json()
        assert len(page["items"]) <= size
        found += page["items"]
        token = page.get("nextPageToken", "")
        if not token:
            return found
    raise AssertionError("the list does not end")


def test_max_results_pages_give_the_whole_list_once(client: Client, path: str) -> None:
    whole = client.get(path).json()["items"]
    assert len(whole) > 1
    for size in (1, 2, len(whole), len(whole) + 1):
        assert walk(client, path, size) == whole


@pytest.mark.smoke
def test_max_results_zero_gives_no_items_and_a_token(client: Client, path: str) -> None:
    page = client.get(f"{path}?maxResults=0").json()
    assert page["items"] == []
    rest = client.get(f"{path}?pageToken={page['nextPageToken']}").json()
    assert rest["items"] == client.get(path).json()["items"]


def test_max_results_may_be_as_large_as_an_int32(client: Client, path: str) -> None:
    assert client.get(f"{path}?maxResults=2147483647").body == client.get(path).body


# One of them percent-encoded; tests/unit/edge/test_parameters.py has more.
@pytest.mark.parametrize("value", ["-1", "%2B1"])
def test_max_results_that_is_no_non_negative_int32_is_400_and_named(
    client: Client, path: str, value: str
) -> None:
    answer = client.get(f"{path}?maxResults={value}")
    assert answer.error() == (400, "INVALID_PARAMETER_VALUE")
    assert "maxResults" in answer.json()["message"]


def test_next_page_token_is_url_safe_as_it_is(client: Client, path: str) -> None:
    token = client.get(f"{path}?maxResults=1").json()["nextPageToken"]
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


def test_next_page_token_is_absent_on_the_last_page(client: Client, path: str) -> None:
    size = len(client.get(path).json()["items"])
    assert "nextPageToken" not in client.get(f"{path}?maxResults={size}").json()


def test_page_token_of_nobody_is_400(client: Client, path: str) -> None:
    token = client.get(f"{path}?maxResults=1").json()["nextPageToken"]
    swapped = ("B" if token[0] == "A" else "A") + token[1:]
    for forged in ("x", "AAAA", token[:-2], token + "AA", swapped, "%00", "%ff", "null", "a" * 5000):
        assert client.get(f"{path}?pageToken={forged}").error() == (400, "INVALID_PARAMETER_VALUE"), forged


@pytest.mark.smoke
def test_page_token_of_another_list_is_400(client: Client, gateway: Gateway) -> None:
    token = client.get("/shares?maxResults=1").json()["nextPageToken"]
    answer = client.get(f"/shares/{gateway.plain.share}/all-tables?pageToken={token}")
    assert answer.error() == (400, "INVALID_PARAMETER_VALUE")


def test_page_token_that_is_empty_starts_at_the_beginning(client: Client, path: str) -> None:
    assert client.get(f"{path}?pageToken=").body == client.get(path).body


def test_unknown_parameters_are_ignored(client: Client, path: str) -> None:
    assert client.get(f"{path}?readChangeFeed=true&x=1&x=2&maxresults=z").body == client.get(path).body


def test_a_repeated_parameter_is_400(client: Client, path: str) -> None:
    assert client.get(f"{path}?maxResults=1&maxResults=2").error() == (400, "INVALID_PARAMETER_VALUE")
