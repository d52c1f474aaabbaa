"""Read Data from a Table: POST …/tables/{table}/query."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.cases import each_case
from tests.contract.http.client import Answer, Client, fetch
from tests.contract.http.facts import Gateway, TableFacts

END = {"delta-sharing-capabilities": "includeEndStreamAction=true"}


def ask(
    client: Client,
    table: TableFacts,
    body: bytes | dict[str, Any] = b"{}",
    headers: dict[str, str] | None = None,
) -> Answer:
    return client.post(f"{table.path}/query", body, headers)


def files(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200
    found = [line["file"] for line in answer.lines() if "file" in line]
    assert found
    return found


def test_content_type(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.plain)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"


def test_delta_table_version(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway.plain).headers["Delta-Table-Version"] == str(gateway.plain.version)


def test_delta_sharing_capabilities(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway.plain).headers["delta-sharing-capabilities"] == "responseformat=parquet"


def test_cache_control_keeps_urls_out_of_caches(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway.plain).headers["Cache-Control"] == "no-store"


@pytest.mark.smoke
def test_protocol_metadata_and_a_line_for_each_file(client: Client, gateway: Gateway) -> None:
    lines = ask(client, gateway.plain).lines()
    assert [list(line) for line in lines] == [["protocol"], ["metaData"], *([["file"]] * gateway.plain.files)]


def test_the_head_is_byte_for_byte_that_of_metadata(client: Client, gateway: Gateway) -> None:
    metadata = client.get(f"{gateway.plain.path}/metadata").body
    assert ask(client, gateway.plain).body.startswith(metadata)


def test_the_lines_are_ascii_and_none_is_blank(client: Client, gateway: Gateway) -> None:
    body = ask(client, gateway.plain).body
    assert body.isascii()
    assert b"\n\n" not in body
    assert body.endswith(b"}\n")


def test_file_url(client: Client, gateway: Gateway) -> None:
    urls = [file["url"] for file in files(ask(client, gateway.plain))]
    assert len(set(urls)) == gateway.plain.files
    assert all(url.startswith(("https://", "http://127.0.0.1")) for url in urls)
    assert all("sp=" in url or "X-Amz-Signature=" in url for url in urls)


def test_file_id_is_the_same_in_every_answer(client: Client, gateway: Gateway) -> None:
    first, second = (files(ask(client, gateway.plain)) for _ in range(2))
    assert [file["id"] for file in first] == [file["id"] for file in second]
    assert len({file["id"] for file in first}) == gateway.plain.files


def test_file_partition_values(client: Client, gateway: Gateway) -> None:
    for file in files(ask(client, gateway.plain)):
        assert set(file["partitionValues"]) == set(gateway.plain.partition_columns)


def test_file_size(client: Client, gateway: Gateway) -> None:
    assert sum(file["size"] for file in files(ask(client, gateway.plain))) == gateway.plain.size


def test_file_stats_is_json_in_a_string(client: Client, gateway: Gateway) -> None:
    for file in files(ask(client, gateway.plain)):
        assert json.loads(file["stats"])["numRecords"] >= 0


def test_file_expiration_timestamp_is_in_the_future(client: Client, gateway: Gateway) -> None:
    for file in files(ask(client, gateway.plain)):
        assert file["expirationTimestamp"] > (time.time() + 20 * 60) * 1000


@pytest.mark.smoke
def test_a_table_of_many_pages_is_whole(client: Client, gateway: Gateway) -> None:
    found = files(ask(client, gateway.large))
    assert len(found) == gateway.large.files
    assert len({file["id"] for file in found}) == gateway.large.files


def test_names_are_case_insensitive(client: Client, gateway: Gateway) -> None:
    path = gateway.plain.path.replace(gateway.plain.share, gateway.plain.share.upper())
    assert len(files(client.post(f"{path}/query"))) == gateway.plain.files


@each_case(
    ("body", "headers"),
    [
        (None, {}),
        (b"{}", {"Content-Type": "application/json; charset=utf-8"}),
        (b' {"unknown": {"a": [1]}} ', {"Content-Type": "application/json"}),
    ],
)
def test_body_may_be_empty_or_an_object_with_unknown_fields(
    gateway: Gateway, body: bytes | None, headers: dict[str, str]
) -> None:
    headers = {"Authorization": f"Bearer {gateway.token}", **headers}
    answer = fetch("POST", f"{gateway.url}{gateway.plain.path}/query", headers, body)
    assert len(files(answer)) == gateway.plain.files


@each_case(
    # Of each kind one; tests/unit/edge/test_schema.py has more.
    "body",
    [b"[]", b"{", b'{"version":"1"}', b"\xff\xfe"],
)
def test_body_that_is_malformed_is_400(client: Client, gateway: Gateway, body: bytes) -> None:
    assert ask(client, gateway.plain, body).error() == (400, "MALFORMED_REQUEST")


def test_content_type_that_is_not_json_is_415(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.plain, b"{}", {"Content-Type": "text/plain"})
    assert answer.error() == (415, "MALFORMED_REQUEST")


@pytest.mark.smoke
def test_body_that_is_too_large_is_413(client: Client, gateway: Gateway) -> None:
    body = b'{"jsonPredicateHints":"' + b"x" * gateway.body_limit + b'"}'
    assert ask(client, gateway.plain, body).error() == (413, "MALFORMED_REQUEST")


def test_predicate_hints_that_do_not_parse_are_skipped(client: Client, gateway: Gateway) -> None:
    hints = {"predicateHints": ["this is ( not SQL", "no_such_column = 1", ""]}
    assert len(files(ask(client, gateway.plain, hints))) == gateway.plain.files


def test_json_predicate_hints_that_do_not_parse_are_skipped(client: Client, gateway: Gateway) -> None:
    for hint in ("", "{", "null", '{"op":"nonsense"}', "[" * 5000):
        assert len(files(ask(client, gateway.plain, {"jsonPredicateHints": hint}))) == gateway.plain.files


def test_limit_hint(client: Client, gateway: Gateway) -> None:
    assert 1 <= len(files(ask(client, gateway.large, {"limitHint": 1}))) < gateway.large.files
    assert len(files(ask(client, gateway.plain, {"limitHint": 2**62}))) == gateway.plain.files


def test_limit_hint_that_is_negative_is_400(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway.plain, {"limitHint": -1}).error() == (400, "INVALID_PARAMETER_VALUE")


def test_version(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.history, {"version": 0})
    assert answer.status == 200
    assert answer.headers["Delta-Table-Version"] == "0"
    assert answer.lines()[1]["metaData"]["version"] == 0


def test_version_of_a_table_without_history_is_400(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.plain, {"version": 0})
    assert answer.status == 400
    assert "Reading table by version or timestamp is not supported" in answer.json()["message"]


@pytest.mark.smoke
def test_version_and_timestamp_together_are_400(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.history, {"version": 0, "timestamp": "2022-01-01T00:00:00Z"})
    assert answer.error() == (400, "INVALID_PARAMETER_VALUE")
    assert "Please only provide one of" in answer.json()["message"]


@each_case(
    "field", [{"endingVersion": 3}, {"includeRefreshToken": False}, {"idempotencyKey": "k", "queryId": "q"}]
)
def test_what_says_nothing_here_is_ignored(client: Client, gateway: Gateway, field: dict[str, Any]) -> None:
    lines = ask(client, gateway.plain, field).lines()
    assert [next(iter(line)) for line in lines[2:]] == ["file"] * gateway.plain.files


def test_two_states_of_the_table_are_400(client: Client, gateway: Gateway) -> None:
    message = ask(client, gateway.history, {"version": 0, "startingVersion": 0}).message()
    assert "Please only provide one of: version, timestamp, startingVersion" in message


def test_version_before_what_is_shared_is_400(client: Client, gateway: Gateway) -> None:
    for body in ({"version": 0}, {"startingVersion": 0}):
        message = ask(client, gateway.bounded, body).message()
        assert "You can only query table data since version 1" in message


def test_version_after_the_latest_is_400(client: Client, gateway: Gateway) -> None:
    for body in ({"version": 99}, {"startingVersion": 99}):
        ask(client, gateway.history, body).message()


def test_end_stream_action_is_absent_unless_asked_for(client: Client, gateway: Gateway) -> None:
    for capabilities in ("", "includeEndStreamAction=false", "responseformat=parquet"):
        answer = ask(client, gateway.plain, headers={"delta-sharing-capabilities": capabilities})
        assert b"endStreamAction" not in answer.body
        assert "includeendstreamaction" not in answer.headers["delta-sharing-capabilities"]


@pytest.mark.smoke
def test_end_stream_action_is_last_where_it_was_asked_for(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.plain, headers=END)
    last = answer.lines()[-1]
    assert "includeendstreamaction=true" in answer.headers["delta-sharing-capabilities"].split(";")
    expirations = [file["expirationTimestamp"] for file in files(answer)]
    assert last == {"endStreamAction": {"minUrlExpirationTimestamp": min(expirations)}}


def test_404_for_what_does_not_exist_or_is_not_granted(client: Client, gateway: Gateway) -> None:
    assert client.post(f"{gateway.plain.path}-none/query").error() == (404, "RESOURCE_DOES_NOT_EXIST")
    assert ask(client, gateway.hidden).error() == (404, "RESOURCE_DOES_NOT_EXIST")


def test_a_client_of_http_1_0_gets_the_whole_answer(client: Client, gateway: Gateway) -> None:
    path = f"{gateway.url.split('/', 3)[3]}{gateway.plain.path}/query"
    head = f"POST /{path} HTTP/1.0\r\nAuthorization: Bearer {gateway.token}\r\nContent-Length: 0\r\n\r\n"
    answer, _, body = client.raw(head.encode()).partition(b"\r\n\r\n")
    assert b"chunked" not in answer
    assert len(body.splitlines()) == 2 + gateway.plain.files
