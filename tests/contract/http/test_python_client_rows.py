"""What the Python connector needs on the wire, one test for each thing that it fails on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import each_case
from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway, TableFacts

RESOLVE = "responseformat=delta,parquet;readerfeatures=deletionvectors,columnmapping,timestampntz"
DELTA = "responseformat=delta;readerfeatures=deletionvectors,columnmapping,timestampntz"
DELTA_FEED = "responseformat=delta;readerfeatures=deletionvectors,columnmapping"
# What its Delta reader takes a URL for a URL by.
PRESIGNED = ("X-Amz-Signature=", "sp=", "X-Goog-Credential=", "X-OSS-Credential=", "X-Databricks-Signature=")

Ask = Callable[[Client, Gateway], Answer]


def parquet_snapshot(client: Client, gateway: Gateway) -> Answer:
    return client.query(gateway.plain)


def delta_snapshot(client: Client, gateway: Gateway) -> Answer:
    return client.query(gateway.vectors, {}, DELTA)


def parquet_feed(client: Client, gateway: Gateway) -> Answer:
    return client.changes(gateway.change_feed, startingVersion=0)


def delta_feed(client: Client, gateway: Gateway) -> Answer:
    return client.changes(
        gateway.change_feed, DELTA_FEED, startingVersion=0, includeHistoricalMetadata="True"
    )


def metadata(client: Client, gateway: Gateway) -> Answer:
    return resolve(client, gateway.plain)


def resolve(client: Client, table: TableFacts) -> Answer:
    return client.get(f"{table.path}/metadata", {"delta-sharing-capabilities": RESOLVE})


FILES = [parquet_snapshot, delta_snapshot, parquet_feed, delta_feed]
every_read = pytest.mark.parametrize("ask", [*FILES, metadata], ids=lambda ask: ask.__name__)
every_read_of_files = pytest.mark.parametrize("ask", FILES, ids=lambda ask: ask.__name__)


@every_read
def test_the_version_is_in_a_header(client: Client, gateway: Gateway, ask: Ask) -> None:
    assert int(ask(client, gateway).headers["delta-table-version"]) >= 0


def test_the_version_is_in_the_header_of_version_too(client: Client, gateway: Gateway) -> None:
    assert int(client.get(f"{gateway.plain.path}/version").headers["delta-table-version"]) >= 0


@every_read
def test_no_end_of_stream_comes_uninvited(client: Client, gateway: Gateway, ask: Ask) -> None:
    answer = ask(client, gateway)
    assert answer.status == 200
    assert b"endStreamAction" not in answer.body


def test_parquet_changes_have_no_metadata_of_later_versions(client: Client, gateway: Gateway) -> None:
    kinds = {next(iter(line)) for line in parquet_feed(client, gateway).streamed()[2:]}
    assert kinds == {"add", "cdf"}


def test_delta_changes_have_no_protocol_of_later_versions(client: Client, gateway: Gateway) -> None:
    kinds = {next(iter(line)) for line in delta_feed(client, gateway).streamed()[2:]}
    assert kinds == {"file", "metaData"}


@every_read
def test_no_line_is_blank(client: Client, gateway: Gateway, ask: Ask) -> None:
    body = ask(client, gateway).body.decode()
    assert all(json.loads(line) for line in body.splitlines())


@every_read
def test_no_character_ends_a_line_but_a_newline(client: Client, gateway: Gateway, ask: Ask) -> None:
    body = ask(client, gateway).body
    assert body.isascii()
    assert len(body.decode().splitlines()) == body.count(b"\n")


@each_case("path", ["/shares", "/shares/{}/schemas", "/shares/{}/all-tables"])
def test_a_list_is_one_line(client: Client, gateway: Gateway, path: str) -> None:
    assert len(client.get(path.format(gateway.plain.share)).body.decode().splitlines()) == 1


@each_case("ask", [parquet_snapshot, parquet_feed, metadata], ids=lambda ask: ask.__name__)
def test_the_word_delta_is_in_no_capability_of_a_parquet_answer(
    client: Client, gateway: Gateway, ask: Ask
) -> None:
    assert "delta" not in ask(client, gateway).headers["delta-sharing-capabilities"].lower()


@pytest.mark.parametrize("ask", [delta_snapshot, delta_feed], ids=lambda ask: ask.__name__)
def test_the_delta_format_is_named_in_lower_case(client: Client, gateway: Gateway, ask: Ask) -> None:
    assert "responseformat=delta" in ask(client, gateway).headers["delta-sharing-capabilities"].split(";")


def test_a_client_without_capabilities_gets_parquet(client: Client, gateway: Gateway) -> None:
    assert "url" in parquet_snapshot(client, gateway).streamed()[2]["file"]
    assert "deltaMetadata" not in client.get(f"{gateway.plain.path}/metadata").streamed()[1]["metaData"]


def test_a_table_with_vectors_is_resolved_to_delta(client: Client, gateway: Gateway) -> None:
    answer = resolve(client, gateway.vectors)
    assert answer.status == 200
    assert answer.headers["delta-sharing-capabilities"] == "responseformat=delta"


def actions(answer: Answer) -> list[tuple[str, dict[str, Any]]]:
    """Return the actions of the log by their names, in the order of the lines."""
    files = [line["file"] for line in answer.streamed()[2:] if "file" in line]
    return [action for file in files for action in file["deltaSingleAction"].items()]


def adds(answer: Answer) -> list[dict[str, Any]]:
    return [action for name, action in actions(answer) if name == "add"]


@pytest.mark.parametrize("ask", [delta_snapshot, delta_feed], ids=lambda ask: ask.__name__)
def test_a_delta_add_has_all_that_its_reader_requires(client: Client, gateway: Gateway, ask: Ask) -> None:
    found = adds(ask(client, gateway))
    assert found
    for add in found:
        assert {"path", "size", "modificationTime", "dataChange", "partitionValues"} <= set(add)


def test_a_delta_protocol_without_features_has_no_list_of_them(client: Client, gateway: Gateway) -> None:
    protocol = client.query(gateway.plain, {}, DELTA).streamed()[0]["protocol"]["deltaProtocol"]
    assert protocol["minReaderVersion"] < 3
    assert "readerFeatures" not in protocol


@pytest.mark.parametrize("ask", [delta_snapshot, delta_feed], ids=lambda ask: ask.__name__)
def test_a_delta_url_looks_presigned_of_files_and_of_vectors(
    client: Client, gateway: Gateway, ask: Ask
) -> None:
    found = actions(ask(client, gateway))
    assert found
    for _, action in found:
        vector = action.get("deletionVector", {"storageType": "i"})
        urls = [action["path"], *([vector["pathOrInlineDv"]] if vector["storageType"] == "p" else [])]
        for url in urls:
            assert any(f"{mark}{key}" in url for mark in "?&" for key in PRESIGNED), url


def test_the_protocol_of_delta_changes_is_of_a_writer_that_knows_feeds(
    client: Client, gateway: Gateway
) -> None:
    protocol = delta_feed(client, gateway).streamed()[0]["protocol"]["deltaProtocol"]
    version, features = protocol["minWriterVersion"], protocol.get("writerFeatures", [])
    assert "changeDataFeed" in features if version >= 7 else version >= 4


def test_delta_changes_tell_versions_and_times(client: Client, gateway: Gateway) -> None:
    lines = delta_feed(client, gateway).streamed()[1:]
    assert any("file" in line for line in lines)
    for line in lines:
        if "metaData" in line:
            assert line["metaData"]["version"] >= 0
        else:
            assert {"version", "timestamp"} <= set(line["file"])


def test_times_that_are_encoded_are_understood(client: Client, gateway: Gateway) -> None:
    for text in ("2000-01-01T00%3A00%3A00Z", "2000-01-01T02%3A00%3A00%2B02%3A00"):
        path = f"{gateway.change_feed.path}/changes?startingTimestamp={text}"
        assert client.get(path).headers["Delta-Table-Version"] == "0"


def test_metadata_has_what_this_client_passes_over(client: Client, gateway: Gateway) -> None:
    fields = metadata(client, gateway).streamed()[1]["metaData"]
    assert {"location", "accessModes", "size", "numFiles"} <= set(fields)


@every_read_of_files
def test_nothing_of_an_answer_may_be_kept(client: Client, gateway: Gateway, ask: Ask) -> None:
    assert ask(client, gateway).headers["Cache-Control"] == "no-store"
