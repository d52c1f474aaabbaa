"""maxFiles, pageToken and nextPageToken of queries and changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cases import each_case
from tests.contract.http.client import Answer, Client
from tests.contract.http.deployments import fakes
from tests.contract.http.facts import Gateway

Ask = Callable[..., Answer]


def query(client: Client, gateway: Gateway, token: str | None = None, **body: Any) -> Answer:
    """Ask for a page of a query, as the recipient of the token."""
    return client.post(f"{gateway.large.path}/query", body, token=token)


def stream(client: Client, gateway: Gateway, token: str | None = None, **body: Any) -> Answer:
    return client.post(f"{gateway.change_feed.path}/query", {"startingVersion": 0, **body}, token=token)


def changes(client: Client, gateway: Gateway, token: str | None = None, **query: Any) -> Answer:
    fields = "".join(f"&{name}={value}" for name, value in query.items())
    return client.get(f"{gateway.change_feed.path}/changes?startingVersion=0{fields}", token=token)


@pytest.fixture(params=[query, stream, changes], ids=["query", "stream", "changes"])
def ask(request: pytest.FixtureRequest) -> Ask:
    chosen: Ask = request.param
    return chosen


SIZE = {query: 900, stream: 3, changes: 2}


def files(answer: Answer) -> list[str]:
    """Return what tells a file from others: its kind, its id and its version."""
    found = []
    for line in answer.streamed()[2:]:
        ((kind, value),) = line.items()
        if kind not in {"metaData", "protocol", "endStreamAction"}:
            found.append(f"{kind} {value['id']} {value.get('version')}")
    return found


def next_token(answer: Answer) -> str | None:
    token = answer.streamed()[-1]["endStreamAction"].get("nextPageToken")
    return None if token is None else str(token)


def walk(client: Client, gateway: Gateway, ask: Ask, size: int) -> list[Answer]:
    pages = [ask(client, gateway, maxFiles=size)]
    while (token := next_token(pages[-1])) is not None:
        assert len(pages) < 100
        pages.append(ask(client, gateway, maxFiles=size, pageToken=token))
    return pages


@pytest.mark.smoke
def test_pages_name_every_file_once_and_no_page_more_than_it_may(
    client: Client, gateway: Gateway, ask: Ask
) -> None:
    size = SIZE[ask]
    pages = [files(page) for page in walk(client, gateway, ask, size)]
    assert len(pages) > 1
    assert all(1 <= len(page) <= size for page in pages)
    assert sorted(file for page in pages for file in page) == sorted(files(ask(client, gateway)))


def test_a_page_of_one_file_is_enough(client: Client, gateway: Gateway) -> None:
    pages = [files(page) for page in walk(client, gateway, changes, 1)]
    assert [len(page) for page in pages] == [1] * len(files(changes(client, gateway)))


def test_pages_begin_with_the_same_bytes_and_version(client: Client, gateway: Gateway, ask: Ask) -> None:
    pages = walk(client, gateway, ask, SIZE[ask])
    assert len({page.headers["Delta-Table-Version"] for page in pages}) == 1
    assert len({page.headers["delta-sharing-capabilities"] for page in pages}) == 1
    assert len({b"\n".join(page.body.split(b"\n")[:2]) for page in pages}) == 1
    assert ask(client, gateway).body.startswith(b"\n".join(pages[0].body.split(b"\n")[:2]))


def test_tokens_need_no_encoding(client: Client, gateway: Gateway, ask: Ask) -> None:
    token = next_token(ask(client, gateway, maxFiles=1))
    assert token
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


def test_the_last_page_has_no_token(client: Client, gateway: Gateway, ask: Ask) -> None:
    answer = ask(client, gateway, maxFiles=100_000)
    assert set(answer.streamed()[-1]["endStreamAction"]) == {"minUrlExpirationTimestamp"}


def test_a_page_may_be_asked_for_again(client: Client, gateway: Gateway, ask: Ask) -> None:
    token = next_token(ask(client, gateway, maxFiles=1))
    first, second = (ask(client, gateway, maxFiles=1, pageToken=token) for _ in range(2))
    assert files(first) == files(second)


def test_pages_may_differ_in_size_and_the_rest_may_come_at_once(
    client: Client, gateway: Gateway, ask: Ask
) -> None:
    first = ask(client, gateway, maxFiles=1)
    rest = ask(client, gateway, pageToken=next_token(first))
    assert sorted(files(first) + files(rest)) == sorted(files(ask(client, gateway)))
    assert next_token(rest) is None


def test_a_token_that_was_tampered_with_is_400(client: Client, gateway: Gateway, ask: Ask) -> None:
    token = next_token(ask(client, gateway, maxFiles=1))
    assert token
    middle = len(token) // 2
    forged = token[:middle] + ("B" if token[middle] == "A" else "A") + token[middle + 1 :]
    message = ask(client, gateway, maxFiles=1, pageToken=forged).message()
    assert "page token" in message


def test_a_token_that_is_far_too_long_is_400(client: Client, gateway: Gateway) -> None:
    token = next_token(changes(client, gateway, maxFiles=1))
    assert token
    # In the URL, where servers have limits of their own.
    message = changes(client, gateway, maxFiles=1, pageToken=token + "A" * 2000).message()
    assert "page token" in message


@pytest.mark.smoke
def test_a_token_of_another_recipient_is_400(client: Client, gateway: Gateway, ask: Ask) -> None:
    token = next_token(ask(client, gateway, maxFiles=1))
    answer = ask(client, gateway, maxFiles=1, pageToken=token, token=gateway.other_token)
    assert "page token" in answer.message()
    assert ask(client, gateway, maxFiles=1, token=gateway.other_token).status == 200


@pytest.mark.smoke
def test_a_token_of_another_table_is_400(client: Client, gateway: Gateway) -> None:
    token = next_token(query(client, gateway, maxFiles=1))
    answer = client.post(f"{gateway.plain.path}/query", {"maxFiles": 1, "pageToken": token})
    assert "page token" in answer.message()


@pytest.mark.smoke
def test_a_token_of_another_kind_of_call_is_400(client: Client, gateway: Gateway) -> None:
    token = next_token(stream(client, gateway, maxFiles=1))
    assert "page token" in changes(client, gateway, maxFiles=1, pageToken=token).message()


@each_case("other", [{"limitHint": 5000}, {"predicateHints": ["x = 1"]}, {"jsonPredicateHints": "{}"}])
def test_a_token_of_another_question_is_400(client: Client, gateway: Gateway, other: dict[str, Any]) -> None:
    token = next_token(query(client, gateway, maxFiles=1))
    assert "page token" in query(client, gateway, maxFiles=1, pageToken=token, **other).message()


def test_a_token_of_another_range_is_400(client: Client, gateway: Gateway) -> None:
    token = next_token(changes(client, gateway, maxFiles=1))
    assert "page token" in changes(client, gateway, endingVersion=3, pageToken=token).message()
    assert (
        "page token" in changes(client, gateway, includeHistoricalMetadata="true", pageToken=token).message()
    )


def test_a_token_of_another_format_is_400(client: Client, gateway: Gateway) -> None:
    token = next_token(query(client, gateway, maxFiles=1))
    headers = {"delta-sharing-capabilities": "responseformat=delta"}
    body = {"maxFiles": 1, "pageToken": token}
    assert "page token" in client.post(f"{gateway.large.path}/query", body, headers).message()


def test_limit_hint_goes_for_all_pages_together(client: Client, gateway: Gateway) -> None:
    body: dict[str, Any] = {"limitHint": 10, "maxFiles": 3}
    whole = files(query(client, gateway, limitHint=10))
    found: list[str] = []
    for _ in range(len(whole)):
        page = query(client, gateway, **body)
        found += files(page)
        body["pageToken"] = next_token(page)
        if body["pageToken"] is None:
            break
    assert len(found) == len(set(found)) == len(whole)


def test_an_old_token_is_400() -> None:
    with fakes() as running:
        client = Client(running.gateway)
        token = next_token(query(client, running.gateway, maxFiles=1))
        running.services.snapshot.now = lambda: datetime.now(UTC) + timedelta(hours=73)
        assert "expired" in query(client, running.gateway, maxFiles=1, pageToken=token).message()
