"""What the Spark connector needs on the wire, one test for each thing that it fails on."""

from __future__ import annotations

import json
import time
from http.client import HTTPMessage
from typing import Any

import pytest

from tests.cases import each_case
from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway
from tests.contract.http.spark_client import BOTH, DELTA, END, PARQUET, SparkClient, SparkFailureError

FORMATS = pytest.mark.parametrize("capabilities", [PARQUET, DELTA], ids=["parquet", "delta"])


@pytest.fixture
def spark(client: Client) -> SparkClient:
    return SparkClient(client)


@pytest.fixture
def delta(client: Client) -> SparkClient:
    return SparkClient(client, DELTA)


def test_the_capabilities_on_lists_and_versions_do_no_harm(spark: SparkClient, gateway: Gateway) -> None:
    names = [table["name"] for table in spark.list_tables(gateway.plain.share)]
    assert gateway.plain.name in names
    assert spark.version(gateway.plain) == gateway.plain.version


def test_the_capabilities_on_requests_for_credentials_do_no_harm(client: Client, gateway: Gateway) -> None:
    for capabilities in (PARQUET, DELTA, BOTH):
        headers = {"delta-sharing-capabilities": capabilities}
        # Without a body and a type of one, as it asks for the table's own location.
        path = f"{gateway.dir_only.path}/temporary-table-credentials"
        answer = client.request("POST", path, headers)
        assert answer.status == 200
        assert answer.json()["credentials"]["location"] == gateway.dir_only.location


def test_lists_end_without_a_token(spark: SparkClient, gateway: Gateway) -> None:
    names = [table["name"] for table in spark.list_tables(gateway.plain.share)]
    assert len(names) == len(set(names)) > 2


def test_auto_resolve_gets_parquet_where_that_is_enough(client: Client, gateway: Gateway) -> None:
    assert SparkClient(client, BOTH).metadata(gateway.plain).response_format == "parquet"


@pytest.mark.smoke
def test_auto_resolve_gets_delta_where_it_is_needed(client: Client, gateway: Gateway) -> None:
    assert SparkClient(client, BOTH).metadata(gateway.vectors).response_format == "delta"
    assert SparkClient(client, DELTA).files(gateway.vectors).response_format == "delta"


def test_who_asks_for_parquet_never_gets_delta(spark: SparkClient, gateway: Gateway) -> None:
    with pytest.raises(SparkFailureError, match=r"status 400.*Unsupported Delta Table Properties"):
        spark.files(gateway.vectors)


def test_reader_features_are_compared_in_any_case(client: Client, gateway: Gateway) -> None:
    for features in ("deletionVectors", "deletionvectors", "DELETIONVECTORS"):
        asked = f"responseformat=delta;readerfeatures={features}"
        assert SparkClient(client, asked).files(gateway.vectors).response_format == "delta"


@FORMATS
def test_metadata_has_exactly_two_lines(client: Client, gateway: Gateway, capabilities: str) -> None:
    for asked in (capabilities, capabilities + END):
        SparkClient(client, asked).metadata(gateway.plain)


@FORMATS
def test_the_version_of_a_version_is_that_version(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    asked = SparkClient(client, capabilities)
    assert asked.metadata(gateway.history, version=0).version == 0
    assert asked.files(gateway.history, {"version": 0}).version == 0


@FORMATS
def test_the_size_of_the_table_is_told(client: Client, gateway: Gateway, capabilities: str) -> None:
    asked = SparkClient(client, capabilities)
    for found in (asked.metadata(gateway.plain), asked.files(gateway.plain)):
        assert json.loads(found.metadata)["metaData"]["size"] == gateway.plain.size


@FORMATS
def test_protocol_and_schema_of_a_query_equal_those_of_metadata(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    asked = SparkClient(client, capabilities)
    for body, query in (({}, {}), ({"version": 0}, {"version": 0})):
        metadata, files = asked.metadata(gateway.history, **query), asked.files(gateway.history, body)
        assert files.protocol == metadata.protocol
        assert files.metadata == metadata.metadata


def test_a_parquet_protocol_is_one_that_it_reads(spark: SparkClient, gateway: Gateway) -> None:
    for table in (gateway.plain, gateway.change_feed, gateway.large):
        assert json.loads(spark.metadata(table).protocol)["protocol"]["minReaderVersion"] <= 2


@FORMATS
def test_a_snapshot_has_files_and_nothing_else(client: Client, gateway: Gateway, capabilities: str) -> None:
    assert len(SparkClient(client, capabilities).files(gateway.plain).lines) == gateway.plain.files


@FORMATS
def test_a_stream_tells_the_version_and_time_of_each_file(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    found = SparkClient(client, capabilities).stream(gateway.change_feed, 0, gateway.change_feed.version)
    assert found.version == 0
    assert {1, 2, 3, 5} == {
        value["version"] for line in found.lines for kind, value in line.items() if kind != "metaData"
    }


@FORMATS
def test_changes_tell_the_version_and_time_of_each_file(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    found = SparkClient(client, capabilities).feed(gateway.change_feed, startingVersion=1, endingVersion=3)
    assert found.version == 1
    assert found.lines


def test_a_removed_file_has_a_size(delta: SparkClient, gateway: Gateway) -> None:
    removed = delta.stream(gateway.change_feed, 0, 5).actions("remove")
    assert removed
    assert all(action["size"] > 0 for action in removed)


def test_a_file_of_changes_has_no_deletion_vector(delta: SparkClient, gateway: Gateway) -> None:
    changes = delta.feed(gateway.change_feed, startingVersion=0).actions("cdc")
    assert changes
    assert not any("deletionVector" in action for action in changes)


def test_a_deletion_vector_is_inline_or_has_a_url_and_the_id_of_its_file(
    delta: SparkClient, gateway: Gateway
) -> None:
    vectors = [
        (line["file"], action["deletionVector"])
        for line in delta.files(gateway.vectors).lines
        if "deletionVector" in (action := line["file"]["deltaSingleAction"]["add"])
    ]
    assert "p" in {vector["storageType"] for _, vector in vectors}
    for file, vector in vectors:
        if vector["storageType"] == "p":
            assert file["deletionVectorFileId"]
            assert "://" in vector["pathOrInlineDv"]


@FORMATS
def test_the_latest_snapshot_comes_with_a_refresh_token(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    end = SparkClient(client, capabilities).files(gateway.plain).end
    assert end is not None
    assert end["refreshToken"]


@FORMATS
def test_a_refresh_without_predicates_is_a_superset_with_the_same_ids_of_the_same_version(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    asked = SparkClient(client, capabilities)
    first = asked.files(gateway.large, {"predicateHints": ["number = 0"], "limitHint": 1})
    assert first.end is not None
    again = asked.files(gateway.large, {"refreshToken": first.end["refreshToken"]})
    assert set(first.ids) <= set(again.ids)
    assert again.version == first.version
    assert (again.protocol, again.metadata) == (first.protocol, first.metadata)


@FORMATS
def test_urls_live_long_enough_not_to_be_refreshed_all_the_time(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    soon = (time.time() + 20 * 60) * 1000
    lines = SparkClient(client, capabilities).files(gateway.plain).lines
    assert lines
    assert all(line["file"]["expirationTimestamp"] > soon for line in lines)


@FORMATS
def test_a_range_up_to_the_size_is_206_and_whole(client: Client, gateway: Gateway, capabilities: str) -> None:
    if not gateway.serves_files:
        pytest.skip("its URLs lead nowhere")
    asked = SparkClient(client, capabilities)
    lines = asked.files(gateway.plain).lines
    assert lines
    for line in lines:
        file = line["file"]
        action = file.get("deltaSingleAction", {}).get("add", file)
        assert asked.read(action.get("path", action.get("url")), action["size"]).startswith(b"PAR1")


@FORMATS
def test_pages_have_equal_heads_and_name_every_file_once(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    pages = SparkClient(client, capabilities).all_pages(gateway.large, 1000)
    ids = [file for page in pages for file in page.ids]
    assert len(pages) == 3
    assert len(ids) == len(set(ids)) == gateway.large.files


@FORMATS
def test_pages_of_changes_take_the_token_as_it_is(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    asked = SparkClient(client, capabilities)
    pages = asked.all_feed_pages(gateway.change_feed, 2, startingVersion=0)
    assert len(pages) == 3
    assert sorted(file for page in pages for file in page.ids) == sorted(
        asked.feed(gateway.change_feed, startingVersion=0).ids
    )


def test_the_first_pages_urls_do_not_expire_before_the_last_page(
    spark: SparkClient, gateway: Gateway
) -> None:
    pages = spark.all_pages(gateway.large, 1000)
    assert len(pages) == 3
    for page in pages:
        assert page.end is not None
        assert page.end["minUrlExpirationTimestamp"] > (time.time() + 20 * 60) * 1000


@FORMATS
def test_an_end_that_is_announced_is_the_last_line(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    asked = SparkClient(client, capabilities + END)
    for found in (
        asked.files(gateway.plain),
        asked.stream(gateway.change_feed, 0, 5),
        asked.feed(gateway.change_feed, startingVersion=0),
    ):
        assert found.end is not None


@FORMATS
def test_an_end_that_nobody_asked_for_is_not_there(
    client: Client, gateway: Gateway, capabilities: str
) -> None:
    asked = SparkClient(client, capabilities)
    assert asked.stream(gateway.change_feed, 0, 5).end is None
    assert asked.feed(gateway.change_feed, startingVersion=0).end is None
    assert asked.files(gateway.history, {"version": 0}).end is None


def test_delta_changes_come_with_the_metadata_of_later_versions(delta: SparkClient, gateway: Gateway) -> None:
    lines = delta.feed(gateway.change_feed, startingVersion=0).lines
    assert [line["metaData"]["version"] for line in lines if "metaData" in line] == [4]


def test_a_window_of_a_hundred_versions_may_reach_beyond_the_latest(
    spark: SparkClient, gateway: Gateway
) -> None:
    assert spark.stream(gateway.change_feed, 1, 100).version == 1


def test_fileidhash_is_echoed(client: Client, gateway: Gateway) -> None:
    for table, path in ((gateway.plain, "query"), (gateway.change_feed, "changes?startingVersion=0")):
        method = "POST" if path == "query" else "GET"
        answer = client.request(method, f"{table.path}/{path}", {"fileidhash": "parquet"})
        assert answer.headers["fileidhash"] == "parquet"


@each_case("body", [{"startingVersion": 99}, {"version": 99}, {"pageToken": "x"}, {"refreshToken": "x"}])
def test_what_will_not_go_away_is_no_status_that_it_retries(
    client: Client, gateway: Gateway, body: dict[str, Any]
) -> None:
    assert client.query(gateway.history, body).status == 400


def test_names_in_its_encoding_are_looked_up(client: Client) -> None:
    answer = client.post("/shares/Sales/schemas/eu/tables/no+such%2Btable/query")
    assert answer.error() == (404, "RESOURCE_DOES_NOT_EXIST")


PROTOCOL = {"protocol": {"minReaderVersion": 1}}
METADATA = {"metaData": {"schemaString": "{}"}}
DELTA_PROTOCOL: dict[str, Any] = {"protocol": {"deltaProtocol": {}}}
DELTA_METADATA: dict[str, Any] = {"metaData": {"deltaMetadata": {}}}
FILE = {"file": {"id": "a", "url": "u", "size": 1, "partitionValues": {}}}
ENDED: dict[str, Any] = {"endStreamAction": {}}


def delta_file(action: str = "add", **fields: Any) -> dict[str, Any]:
    return {"file": {"id": "a", "deltaSingleAction": {action: {"path": "u", "size": 1, **fields}}}}


def vector(storage: str) -> dict[str, Any]:
    return {"deletionVector": {"storageType": storage}}


@each_case(
    ("said", "lines", "reason"),
    [
        ("delta", [DELTA_PROTOCOL, DELTA_METADATA], "not asked for"),
        ("parquet", [{"protocol": {"minReaderVersion": 3}}, METADATA], "does not read"),
        ("parquet", [PROTOCOL, METADATA, {"odd": {}}], "unexpected line of odd"),
        ("parquet", [PROTOCOL, METADATA, METADATA], "unexpected line of metaData"),
        ("parquet", [PROTOCOL, METADATA, ENDED, FILE], "unexpected line of endStreamAction"),
        ("parquet", [PROTOCOL, METADATA, {"file": {"id": "a", "url": "u"}}], "without a URL, a size"),
        ("parquet", [PROTOCOL, METADATA, {"file": {"url": "u", "size": 1}}], "without an id"),
        ("parquet;includeendstreamaction=true", [PROTOCOL, METADATA, FILE], "announced is missing"),
        (
            "parquet;includeendstreamaction=true",
            [PROTOCOL, METADATA, {"endStreamAction": {"errorMessage": "no luck"}}],
            "no luck",
        ),
    ],
)
def test_the_double_fails_on_a_parquet_answer_that_spark_fails_on(
    said: str, lines: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(SparkFailureError, match=reason):
        SparkClient(None).check(answer_of(said, lines))  # type: ignore[arg-type]  # it asks nothing


@each_case(
    ("lines", "reason"),
    [
        ([PROTOCOL, DELTA_METADATA], "no Delta protocol"),
        ([DELTA_PROTOCOL, METADATA], "no Delta protocol or metadata"),
        ([DELTA_PROTOCOL, DELTA_METADATA, delta_file(size=None)], "without a path or a size"),
        ([DELTA_PROTOCOL, DELTA_METADATA, delta_file("remove", size=None)], "without a path or a size"),
        (
            [DELTA_PROTOCOL, DELTA_METADATA, delta_file("cdc", **vector("i"))],
            "with a deletion vector",
        ),
        ([DELTA_PROTOCOL, DELTA_METADATA, delta_file(**vector("u"))], "storage type u"),
        ([DELTA_PROTOCOL, DELTA_METADATA, delta_file(**vector("p"))], "without the id of its file"),
    ],
)
def test_the_double_fails_on_a_delta_answer_that_spark_fails_on(
    lines: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(SparkFailureError, match=reason):
        SparkClient(None, DELTA).check(answer_of("delta", lines))  # type: ignore[arg-type]  # it asks nothing


def test_the_double_takes_what_spark_takes() -> None:
    taken = answer_of("parquet;includeendstreamaction=true", [PROTOCOL, METADATA, FILE, ENDED])
    assert SparkClient(None).check(taken).ids == ["a"]  # type: ignore[arg-type]  # it asks nothing


def answer_of(said: str, lines: list[dict[str, Any]]) -> Answer:
    headers = HTTPMessage()
    headers["Delta-Table-Version"] = "1"
    headers["delta-sharing-capabilities"] = f"responseformat={said}"
    body = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    return Answer(status=200, headers=headers, body=body)
