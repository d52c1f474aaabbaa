from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy, MultiDict

from gateway.edge.parameters import (
    Page,
    changes_of,
    file_id_hash_of,
    name_of,
    page_of,
    starting_timestamp_of,
    table_at_of,
)
from gateway.errors import InvalidArgument, NotFound
from gateway.v1.snapshot_pb2 import (
    FILE_ID_HASH_DELTA,
    FILE_ID_HASH_PARQUET,
    FILE_ID_HASH_UNSPECIFIED,
    TableAt,
)
from tests.cases import each_case


def query(**values: str) -> MultiDict[str]:
    return MultiDict(values)


@each_case(("text", "number"), [("0", 0), ("1", 1), ("007", 7), ("2147483647", 2147483647)])
def test_max_results_is_a_number_from_zero(text: str, number: int) -> None:
    assert page_of(query(maxResults=text)) == Page(max_results=number)


@each_case(
    "text",
    [
        "",
        "-1",
        "+1",
        "1.0",
        "1.5",
        "1e3",
        "a",
        "ten",
        "2147483648",
        "9" * 20,
        "9" * 30,
        " 1",
        "1_0",
        "\u0661",
        "0x1",
        "0x10",
        "null",
    ],
)
def test_max_results_that_is_no_such_number_is_named(text: str) -> None:
    with pytest.raises(InvalidArgument, match="maxResults"):
        page_of(query(maxResults=text))


def test_a_page_token_is_passed_as_it_is_and_an_empty_one_is_none() -> None:
    assert page_of(query(pageToken="abc-_")) == Page(page_token="abc-_")
    assert page_of(query(pageToken="")) == Page()


def test_a_page_token_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="pageToken"):
        page_of(query(pageToken="a\udcff"))


def test_unknown_parameters_are_ignored() -> None:
    assert page_of(query(readChangeFeed="true", maxresults="x")) == Page()


@pytest.mark.parametrize("name", ["maxResults", "pageToken"])
def test_a_known_parameter_is_given_once(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{name} must be given only once"):
        page_of(MultiDict([(name, "1"), (name, "1")]))


def test_table_at_is_a_version_a_timestamp_or_the_latest() -> None:
    assert table_at_of(query()) == TableAt()
    assert table_at_of(query(version="0")) == TableAt(version=0)
    assert table_at_of(query(version="0")).WhichOneof("at") == "version"
    assert table_at_of(query(timestamp="2022-01-01T00:00:00Z")) == TableAt(timestamp="2022-01-01T00:00:00Z")


def test_version_and_timestamp_exclude_each_other() -> None:
    with pytest.raises(InvalidArgument, match="Please only provide one of"):
        table_at_of(query(version="1", timestamp="2022-01-01T00:00:00Z"))


@each_case("text", ["", "-1", "one", str(2**63)])
def test_a_version_is_a_long(text: str) -> None:
    with pytest.raises(InvalidArgument, match="version"):
        table_at_of(query(version=text))


def test_an_empty_timestamp_is_refused_rather_than_ignored() -> None:
    with pytest.raises(InvalidArgument, match="timestamp"):
        table_at_of(query(timestamp=""))
    with pytest.raises(InvalidArgument, match="startingTimestamp"):
        starting_timestamp_of(query(startingTimestamp=""))
    assert starting_timestamp_of(query()) == ""


@each_case(
    ("values", "expected"),
    [
        ([], (FILE_ID_HASH_UNSPECIFIED, "")),
        (["parquet"], (FILE_ID_HASH_PARQUET, "parquet")),
        (["PARQUET"], (FILE_ID_HASH_PARQUET, "parquet")),
        (["delta"], (FILE_ID_HASH_DELTA, "delta")),
        (["DELTA"], (FILE_ID_HASH_DELTA, "delta")),
        ([" Delta "], (FILE_ID_HASH_DELTA, "delta")),
    ],
)
def test_file_id_hash_is_read_in_any_case_and_echoed_in_lower(
    values: list[str], expected: tuple[int, str]
) -> None:
    headers = CIMultiDictProxy(CIMultiDict(("FileIdHash", value) for value in values))
    assert file_id_hash_of(headers) == expected


@each_case("values", [["md5"], [""], ["parquet", "parquet"], ["parquet,delta"]])
def test_any_other_file_id_hash_is_refused(values: list[str]) -> None:
    with pytest.raises(InvalidArgument, match="parquet, delta"):
        file_id_hash_of(CIMultiDictProxy(CIMultiDict(("fileidhash", value) for value in values)))


def test_a_name_that_is_not_utf_8_cannot_exist() -> None:
    assert name_of({"share": "caf\u00e9"}, "share") == "caf\u00e9"
    with pytest.raises(NotFound):
        name_of({"share": "a\udcff"}, "share")


@each_case(
    ("text", "expected"), [("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False)]
)
def test_a_flag_is_true_or_false_in_any_case(text: str, expected: object) -> None:
    asked = changes_of(query(startingVersion="0", includeHistoricalMetadata=text))
    assert asked.include_historical_metadata is expected
    assert asked.include_historical_protocol is False


@given(st.text())
def test_any_other_flag_is_refused_and_named(text: str) -> None:
    asked = query(startingVersion="0", includeHistoricalProtocol=text)
    if text.lower() not in {"true", "false"}:
        with pytest.raises(InvalidArgument, match="includeHistoricalProtocol"):
            changes_of(asked)


def test_changes_from_a_time_to_a_version() -> None:
    asked = changes_of(query(startingTimestamp="2022-01-01T00:00:00Z", endingVersion="7", maxFiles="1"))
    assert (asked.start.timestamp, asked.end.version, asked.max_files) == ("2022-01-01T00:00:00Z", 7, 1)
    assert asked.page_token == ""


def test_changes_without_an_end_go_on_to_the_latest_version() -> None:
    asked = changes_of(query(startingVersion="3"))
    assert asked.start.version == 3
    assert asked.end.WhichOneof("at") is None
