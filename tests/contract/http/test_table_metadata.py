"""Query Table Metadata: GET …/tables/{table}/metadata."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway, TableFacts

AUTO_RESOLVE = "responseformat=delta,parquet;readerfeatures=deletionvectors,columnmapping,timestampntz"


def ask(client: Client, table: TableFacts, query: str = "", **headers: str) -> Answer:
    return client.get(f"{table.path}/metadata{query}", headers)


def metadata(client: Client, table: TableFacts) -> dict[str, Any]:
    return dict(ask(client, table).lines()[1]["metaData"])


def test_content_type(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.plain)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"


def test_delta_table_version(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway.plain).headers["Delta-Table-Version"] == str(gateway.plain.version)


@pytest.mark.smoke
def test_two_lines_protocol_then_metadata(client: Client, gateway: Gateway) -> None:
    assert [list(line) for line in ask(client, gateway.plain).lines()] == [["protocol"], ["metaData"]]


def test_the_lines_are_ascii_and_none_is_blank(client: Client, gateway: Gateway) -> None:
    body = ask(client, gateway.plain).body
    assert body.isascii()
    assert body.count(b"\n") == 2
    assert body.endswith(b"}\n")


def test_protocol_min_reader_version(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway.plain).lines()[0]["protocol"]["minReaderVersion"] == 1


def test_metadata_id(client: Client, gateway: Gateway) -> None:
    assert metadata(client, gateway.plain)["id"]
    assert metadata(client, gateway.plain)["id"] == metadata(client, gateway.plain)["id"]


def test_metadata_format_provider(client: Client, gateway: Gateway) -> None:
    assert metadata(client, gateway.plain)["format"] == {"provider": "parquet"}


def test_metadata_schema_string(client: Client, gateway: Gateway) -> None:
    schema = json.loads(metadata(client, gateway.plain)["schemaString"])
    assert schema["type"] == "struct"
    assert schema["fields"]


def test_metadata_partition_columns(client: Client, gateway: Gateway) -> None:
    assert metadata(client, gateway.plain)["partitionColumns"] == list(gateway.plain.partition_columns)


def test_metadata_size(client: Client, gateway: Gateway) -> None:
    assert metadata(client, gateway.plain)["size"] == gateway.plain.size


def test_metadata_num_files(client: Client, gateway: Gateway) -> None:
    assert metadata(client, gateway.plain)["numFiles"] == gateway.plain.files


def test_metadata_location_and_access_modes(client: Client, gateway: Gateway) -> None:
    for table in (gateway.dir_only, gateway.both_modes):
        found = metadata(client, table)
        assert found["location"] == table.location
        assert found["accessModes"] == list(table.access_modes)


def test_metadata_auxiliary_locations(client: Client, gateway: Gateway) -> None:
    found = metadata(client, gateway.both_modes)
    assert found.get("auxiliaryLocations", []) == list(gateway.both_modes.auxiliary_locations)


def test_metadata_agrees_with_the_listing(client: Client, gateway: Gateway) -> None:
    table = gateway.both_modes
    items = client.get(f"/shares/{table.share}/schemas/{table.schema}/tables").json()["items"]
    (listed,) = [item for item in items if item["name"] == table.name]
    found = metadata(client, table)
    for field in ("location", "accessModes", "auxiliaryLocations"):
        assert found.get(field) == listed.get(field)


@pytest.mark.smoke
def test_version(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.history, "?version=0")
    assert answer.status == 200
    assert answer.headers["Delta-Table-Version"] == "0"


def test_version_of_a_table_without_history_is_400(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.plain, "?version=0")
    assert answer.status == 400
    assert "Reading table by version or timestamp is not supported" in answer.json()["message"]


def test_version_and_timestamp_together_are_400(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.history, "?version=0&timestamp=2022-01-01T00:00:00Z")
    assert answer.error() == (400, "INVALID_PARAMETER_VALUE")
    assert "Please only provide one of" in answer.json()["message"]


def test_version_that_is_no_long_is_400(client: Client, gateway: Gateway) -> None:
    for value in ("", "-1", "first", "9223372036854775808"):
        assert ask(client, gateway.history, f"?version={value}").error() == (400, "INVALID_PARAMETER_VALUE")


def test_timestamp_that_is_empty_is_400(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway.history, "?timestamp=").error() == (400, "INVALID_PARAMETER_VALUE")


def test_end_stream_action_is_never_added(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.plain, **{"delta-sharing-capabilities": "includeEndStreamAction=true"})
    assert len(answer.lines()) == 2
    assert "includeendstreamaction=true" not in answer.headers["delta-sharing-capabilities"].lower()


def test_response_format_is_parquet_for_a_client_that_says_nothing(client: Client, gateway: Gateway) -> None:
    assert ask(client, gateway.plain).headers["delta-sharing-capabilities"] == "responseformat=parquet"


def test_response_format_of_a_table_without_features_may_be_parquet(client: Client, gateway: Gateway) -> None:
    answer = ask(client, gateway.plain, **{"delta-sharing-capabilities": AUTO_RESOLVE})
    assert answer.status == 200
    header = answer.headers["delta-sharing-capabilities"]
    assert header.split(";")[0] in {"responseformat=parquet", "responseformat=delta"}
    assert ("deltaMetadata" in answer.lines()[1]["metaData"]) == ("delta" in header)


def test_404_for_what_does_not_exist_or_is_not_granted(client: Client, gateway: Gateway) -> None:
    assert client.get(f"{gateway.plain.path}-none/metadata").error() == (404, "RESOURCE_DOES_NOT_EXIST")
    assert ask(client, gateway.hidden).error() == (404, "RESOURCE_DOES_NOT_EXIST")
