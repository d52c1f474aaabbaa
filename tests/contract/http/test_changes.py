"""Read Change Data Feed from a Table: GET …/tables/{table}/changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each_case
from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway

DELTA = "responseformat=delta;readerfeatures=deletionvectors"


def kinds(answer: Answer) -> list[str]:
    return [next(iter(line)) for line in answer.streamed()]


def changed(answer: Answer) -> list[dict[str, Any]]:
    found = [next(iter(line.values())) for line in answer.streamed()[2:]]
    assert found
    return found


def test_content_type_and_version_of_the_start(client: Client, gateway: Gateway) -> None:
    for version in (0, 1, 3):
        answer = client.changes(gateway.change_feed, startingVersion=version)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"
        assert answer.headers["Delta-Table-Version"] == str(version)
        assert answer.headers["delta-sharing-capabilities"] == "responseformat=parquet"
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.smoke
def test_files_of_changed_rows_stand_for_the_files_that_they_tell_of(
    client: Client, gateway: Gateway
) -> None:
    answer = client.changes(gateway.change_feed, startingVersion=0)
    assert kinds(answer)[:2] == ["protocol", "metaData"]
    assert sorted(kinds(answer)[2:]) == ["add", "add", "add", "cdf", "cdf"]
    assert sorted(file["version"] for file in changed(answer)) == [1, 1, 2, 3, 5]


def test_the_range_includes_both_ends(client: Client, gateway: Gateway) -> None:
    answer = client.changes(gateway.change_feed, startingVersion=2, endingVersion=3)
    assert [file["version"] for file in changed(answer)] == [2, 3]
    answer = client.changes(gateway.change_feed, startingVersion=5, endingVersion=5)
    assert [file["version"] for file in changed(answer)] == [5]


def test_each_file_has_a_url_an_id_a_size_its_version_and_its_time(client: Client, gateway: Gateway) -> None:
    for file in changed(client.changes(gateway.change_feed, startingVersion=0)):
        assert "://" in file["url"]
        assert file["id"]
        assert file["size"] > 0
        assert file["version"] >= 1
        assert file["timestamp"] > 0
        assert file["expirationTimestamp"] > 0
        assert isinstance(file["partitionValues"], dict)


def test_ids_are_the_same_in_every_answer(client: Client, gateway: Gateway) -> None:
    first, second = (changed(client.changes(gateway.change_feed, startingVersion=0)) for _ in range(2))
    assert [file["id"] for file in first] == [file["id"] for file in second]


def test_metadata_of_later_versions_where_it_is_asked_for(client: Client, gateway: Gateway) -> None:
    # As the Python client writes it.
    answer = client.changes(gateway.change_feed, startingVersion=1, includeHistoricalMetadata="True")
    metadata = [line["metaData"] for line in answer.streamed()[2:] if "metaData" in line]
    assert [line["version"] for line in metadata] == [4]


@pytest.mark.parametrize("query", [{}, {"includeHistoricalMetadata": "false"}])
def test_no_metadata_of_later_versions_where_it_is_not(
    client: Client, gateway: Gateway, query: dict[str, Any]
) -> None:
    assert "metaData" not in kinds(client.changes(gateway.change_feed, startingVersion=1, **query))[2:]


def test_a_time_stands_for_a_version(client: Client, gateway: Gateway) -> None:
    answer = client.changes(gateway.change_feed, startingTimestamp="2000-01-01T00:00:00Z", endingVersion=1)
    assert answer.headers["Delta-Table-Version"] == "0"
    assert {file["version"] for file in changed(answer)} == {1}


# What the service refuses, and two that the edge refuses; tests/unit/edge/handlers/test_changes.py has more.
@each_case(
    ("query", "message"),
    [
        ({}, "startingVersion or startingTimestamp"),
        (
            {"startingVersion": 0, "startingTimestamp": "2022-01-01T00:00:00Z"},
            "Please only provide one of: startingVersion, startingTimestamp",
        ),
        ({"startingVersion": 99}, "99"),
        ({"startingVersion": 3, "endingVersion": 1}, ""),
        ({"startingTimestamp": "yesterday"}, ""),
        ({"startingVersion": 0, "pageToken": "x"}, "page token"),
    ],
)
def test_what_cannot_be_meant_is_400(
    client: Client, gateway: Gateway, query: dict[str, Any], message: str
) -> None:
    assert message in client.changes(gateway.change_feed, **query).message()


@pytest.mark.smoke
def test_a_table_without_history_has_no_feed(client: Client, gateway: Gateway) -> None:
    table = gateway.plain
    message = client.changes(table, startingVersion=0).message()
    assert f"cdf is not enabled on table {table.share}.{table.schema}.{table.name}" in message


def test_a_table_that_does_not_record_changes_has_no_feed(client: Client, gateway: Gateway) -> None:
    table = gateway.history
    message = client.changes(table, startingVersion=0).message()
    assert f"cdf is not enabled on table {table.share}.{table.schema}.{table.name}" in message


def test_unknown_parameters_are_ignored(client: Client, gateway: Gateway) -> None:
    plain = client.changes(gateway.change_feed, startingVersion=0)
    answer = client.changes(
        gateway.change_feed, startingVersion=0, readChangeFeed="true", x="1", responseFormat="delta"
    )
    assert kinds(answer) == kinds(plain)


def test_fileidhash_is_echoed_and_changes_the_ids(client: Client, gateway: Gateway) -> None:
    path = f"{gateway.change_feed.path}/changes?startingVersion=0"
    plain, delta = client.get(path), client.get(path, {"fileidhash": "DELTA"})
    assert plain.headers["fileidhash"] is None
    assert delta.headers["fileidhash"] == "delta"
    ids = [{file["id"] for file in changed(answer)} for answer in (plain, delta)]
    assert ids[0].isdisjoint(ids[1])
    assert client.get(path, {"fileidhash": "md5"}).error() == (400, "INVALID_PARAMETER_VALUE")


@pytest.mark.smoke
def test_the_delta_format_wraps_actions_of_the_log(client: Client, gateway: Gateway) -> None:
    answer = client.changes(gateway.change_feed, DELTA, startingVersion=0, includeHistoricalMetadata="true")
    assert answer.headers["delta-sharing-capabilities"] == "responseformat=delta"
    lines = answer.streamed()
    assert "deltaProtocol" in lines[0]["protocol"]
    assert all("deltaMetadata" in line["metaData"] for line in lines if "metaData" in line)
    actions = [next(iter(line["file"]["deltaSingleAction"])) for line in lines if "file" in line]
    assert sorted(actions) == ["add", "add", "add", "cdc", "cdc"]


def test_protocols_name_their_version_where_they_are_asked_for(client: Client, gateway: Gateway) -> None:
    for asked, expected in (("true", 1), ("false", None)):
        answer = client.changes(
            gateway.change_feed, DELTA, startingVersion=1, includeHistoricalProtocol=asked
        )
        assert answer.streamed()[0]["protocol"].get("version") == expected


def test_end_stream_action_is_sent_only_where_it_is_asked_for(client: Client, gateway: Gateway) -> None:
    assert b"endStreamAction" not in client.changes(gateway.change_feed, startingVersion=0).body
    for capabilities, query in (("includeEndStreamAction=true", {}), ("", {"maxFiles": 100})):
        answer = client.changes(gateway.change_feed, capabilities, startingVersion=0, **query)
        assert set(answer.streamed()[-1]["endStreamAction"]) == {"minUrlExpirationTimestamp"}
        echoed = "includeendstreamaction=true" in answer.headers["delta-sharing-capabilities"]
        assert echoed == bool(capabilities)


def test_404_for_what_does_not_exist_or_is_not_granted(client: Client, gateway: Gateway) -> None:
    path = f"{gateway.change_feed.path}-none/changes?startingVersion=0"
    assert client.get(path).error() == (404, "RESOURCE_DOES_NOT_EXIST")
    assert client.changes(gateway.hidden, startingVersion=0).error() == (404, "RESOURCE_DOES_NOT_EXIST")


def test_head_is_405(client: Client, gateway: Gateway) -> None:
    answer = client.request("HEAD", f"{gateway.change_feed.path}/changes?startingVersion=0")
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET"
