"""Queries with startingVersion, by which clients follow a table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway

DELTA = "responseformat=delta;readerfeatures=deletionvectors"


def changed(answer: Answer) -> list[tuple[str, int]]:
    lines = [line for line in answer.streamed()[2:] if "metaData" not in line]
    return sorted((next(iter(line)), next(iter(line.values()))["version"]) for line in lines)


@pytest.mark.smoke
def test_files_that_came_and_went_and_no_files_of_changed_rows(client: Client, gateway: Gateway) -> None:
    answer = client.query(gateway.change_feed, {"startingVersion": 0})
    adds = [("add", 1), ("add", 1), ("add", 2), ("add", 3), ("add", 5)]
    assert changed(answer) == [*adds, ("remove", 2), ("remove", 3)]


def test_delta_table_version_is_the_start(client: Client, gateway: Gateway) -> None:
    for version in (0, 2, 5):
        answer = client.query(gateway.change_feed, {"startingVersion": version})
        assert answer.headers["Delta-Table-Version"] == str(version)


def test_ending_version_ends_it(client: Client, gateway: Gateway) -> None:
    answer = client.query(gateway.change_feed, {"startingVersion": 2, "endingVersion": 2})
    assert changed(answer) == [("add", 2), ("remove", 2)]


def test_ending_version_that_is_still_to_come_is_a_hint(client: Client, gateway: Gateway) -> None:
    answer = client.query(gateway.change_feed, {"startingVersion": 5, "endingVersion": 99})
    assert changed(answer) == [("add", 5)]


def test_ending_version_before_the_start_is_400(client: Client, gateway: Gateway) -> None:
    client.query(gateway.change_feed, {"startingVersion": 3, "endingVersion": 2}).message()


def test_metadata_of_later_versions_is_told(client: Client, gateway: Gateway) -> None:
    lines = client.query(gateway.change_feed, {"startingVersion": 1}).streamed()
    assert [line["metaData"]["version"] for line in lines[2:] if "metaData" in line] == [4]
    lines = client.query(gateway.change_feed, {"startingVersion": 4}).streamed()
    assert not [line for line in lines[2:] if "metaData" in line]


def test_each_file_has_its_version_and_its_time(client: Client, gateway: Gateway) -> None:
    lines = client.query(gateway.change_feed, {"startingVersion": 0}).streamed()[2:]
    assert lines
    for line in lines:
        (file,) = line.values()
        assert file["version"] >= 1
        if "metaData" not in line:
            assert file["timestamp"] > 0
            assert file["size"] > 0
            assert "://" in file["url"]


def test_a_table_without_history_is_400(client: Client, gateway: Gateway) -> None:
    message = client.query(gateway.plain, {"startingVersion": 0}).message()
    assert "Reading table by version or timestamp is not supported" in message


@pytest.mark.parametrize(("asked", "told"), [({"includeHistoricalProtocol": True}, 1), ({}, None)])
def test_protocols_name_their_version_in_the_delta_format_where_they_are_asked_for(
    client: Client, gateway: Gateway, asked: dict[str, Any], told: int | None
) -> None:
    body = {"startingVersion": 1} | asked
    answer = client.query(gateway.change_feed, body, DELTA)
    assert answer.streamed()[0]["protocol"].get("version") == told
    assert "version" not in client.query(gateway.change_feed, body).streamed()[0]["protocol"]


def test_the_delta_format_wraps_actions_of_the_log(client: Client, gateway: Gateway) -> None:
    lines = client.query(gateway.change_feed, {"startingVersion": 2, "endingVersion": 2}, DELTA).streamed()
    actions = [next(iter(line["file"]["deltaSingleAction"])) for line in lines[2:]]
    assert sorted(actions) == ["add", "remove"]


def test_end_stream_action_is_sent_only_where_it_is_asked_for(client: Client, gateway: Gateway) -> None:
    assert b"endStreamAction" not in client.query(gateway.change_feed, {"startingVersion": 0}).body
    answer = client.query(gateway.change_feed, {"startingVersion": 0}, "includeEndStreamAction=true")
    assert set(answer.streamed()[-1]["endStreamAction"]) == {"minUrlExpirationTimestamp"}
