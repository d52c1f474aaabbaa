"""includeRefreshToken and refreshToken of queries."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.http.client import Answer, Client
from tests.contract.http.deployments import fakes
from tests.contract.http.facts import Gateway


def ids(answer: Answer) -> list[str]:
    return [line["file"]["id"] for line in answer.streamed() if "file" in line]


def refresh_token(answer: Answer) -> str:
    return str(answer.streamed()[-1]["endStreamAction"]["refreshToken"])


def test_a_refresh_token_comes_with_the_end_where_it_is_asked_for(client: Client, gateway: Gateway) -> None:
    answer = client.query(gateway.plain, {"includeRefreshToken": True})
    assert set(answer.streamed()[-1]["endStreamAction"]) == {"refreshToken", "minUrlExpirationTimestamp"}
    assert re.fullmatch(r"[A-Za-z0-9_-]+", refresh_token(answer))
    assert answer.headers["delta-sharing-capabilities"] == "responseformat=parquet"


def test_the_capability_alone_brings_none(client: Client, gateway: Gateway) -> None:
    answer = client.query(gateway.plain, {}, "includeEndStreamAction=true")
    assert "refreshToken" not in answer.streamed()[-1]["endStreamAction"]


@pytest.mark.smoke
def test_a_refresh_names_the_same_files_of_the_same_version(client: Client, gateway: Gateway) -> None:
    first = client.query(gateway.plain, {"includeRefreshToken": True})
    again = client.query(gateway.plain, {"includeRefreshToken": True, "refreshToken": refresh_token(first)})
    assert ids(again) == ids(first)
    assert again.headers["Delta-Table-Version"] == first.headers["Delta-Table-Version"]
    assert again.body.split(b"\n")[:2] == first.body.split(b"\n")[:2]
    assert refresh_token(again)


def test_a_refresh_without_the_hints_of_the_first_query_names_its_files_too(
    client: Client, gateway: Gateway
) -> None:
    first = client.query(gateway.large, {"includeRefreshToken": True, "limitHint": 1})
    again = client.query(gateway.large, {"refreshToken": refresh_token(first)})
    assert len(ids(again)) == gateway.large.files
    assert set(ids(again)) >= set(ids(first))
    assert b"endStreamAction" not in again.body


def test_a_refresh_may_be_paged(client: Client, gateway: Gateway) -> None:
    token = refresh_token(client.query(gateway.large, {"includeRefreshToken": True, "maxFiles": 2000}))
    first = client.query(gateway.large, {"refreshToken": token, "maxFiles": 2000})
    # Later pages do not repeat it: their version is that of the page token.
    following = first.streamed()[-1]["endStreamAction"]["nextPageToken"]
    second = client.query(gateway.large, {"pageToken": following, "maxFiles": 2000})
    assert len(set(ids(first) + ids(second))) == gateway.large.files


# Of each kind one; tests/unit/edge/test_schema.py has every pair.
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"includeRefreshToken": True, "version": 0}, "cannot be used when querying a specific version"),
        ({"refreshToken": "x", "pageToken": "x"}, "must be used in the first page request"),
    ],
)
def test_a_refresh_is_of_the_latest_version_and_of_its_first_page(
    client: Client, gateway: Gateway, body: dict[str, Any], message: str
) -> None:
    assert message in client.query(gateway.history, body).message()


def test_a_token_of_nobody_is_400(client: Client, gateway: Gateway) -> None:
    assert "refresh token" in client.query(gateway.plain, {"refreshToken": "a" * 5000}).message()


def test_a_token_that_was_tampered_with_is_400(client: Client, gateway: Gateway) -> None:
    token = refresh_token(client.query(gateway.plain, {"includeRefreshToken": True}))
    flipped = token[:20] + ("B" if token[20] == "A" else "A") + token[21:]
    assert "refresh token" in client.query(gateway.plain, {"refreshToken": flipped}).message()


@pytest.mark.smoke
def test_a_token_of_another_table_or_recipient_is_400(client: Client, gateway: Gateway) -> None:
    token = refresh_token(client.query(gateway.plain, {"includeRefreshToken": True}))
    assert "refresh token" in client.query(gateway.large, {"refreshToken": token}).message()
    path = f"{gateway.plain.path}/query"
    answer = client.post(path, {"refreshToken": token}, token=gateway.other_token)
    assert "refresh token" in answer.message()


@pytest.mark.smoke
def test_a_page_token_is_no_refresh_token(client: Client, gateway: Gateway) -> None:
    page = client.query(gateway.large, {"maxFiles": 1}).streamed()[-1]["endStreamAction"]["nextPageToken"]
    assert "refresh token" in client.query(gateway.large, {"refreshToken": page}).message()


def test_an_old_token_is_400() -> None:
    with fakes() as running:
        client = Client(running.gateway)
        token = refresh_token(client.query(running.gateway.plain, {"includeRefreshToken": True}))
        running.services.snapshot.now = lambda: datetime.now(UTC) + timedelta(hours=25)
        assert "expired" in client.query(running.gateway.plain, {"refreshToken": token}).message()
