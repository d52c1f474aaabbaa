from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.capabilities import Capabilities, parse, render
from gateway.v1.catalog_pb2 import ACCESS_MODE_DIR, ACCESS_MODE_URL
from gateway.v1.snapshot_pb2 import (
    RESPONSE_FORMAT_DELTA,
    RESPONSE_FORMAT_PARQUET,
    RESPONSE_FORMAT_UNSPECIFIED,
)
from tests.cases import each_case

WORDS = st.text(
    st.characters(codec="ascii", exclude_characters=";,= \t", categories=["L", "N", "P"]), min_size=1
)


def test_no_header_says_nothing() -> None:
    assert parse([]) == Capabilities()


def test_the_header_of_the_python_client() -> None:
    header = "responseformat=delta,parquet;readerfeatures=deletionvectors,columnmapping,timestampntz"
    assert parse([header]) == Capabilities(
        response_formats=(RESPONSE_FORMAT_DELTA, RESPONSE_FORMAT_PARQUET),
        reader_features=("deletionvectors", "columnmapping", "timestampntz"),
    )


def test_keys_and_values_are_case_insensitive_and_spaces_do_not_matter() -> None:
    header = (
        " ResponseFormat = Parquet , DELTA ; readerFeatures=deletionVectors; INCLUDEENDSTREAMACTION=True "
    )
    assert parse([header]) == Capabilities(
        response_formats=(RESPONSE_FORMAT_PARQUET, RESPONSE_FORMAT_DELTA),
        reader_features=("deletionvectors",),
        include_end_stream_action=True,
    )


def test_several_headers_are_one() -> None:
    assert parse(["responseformat=delta", "includeendstreamaction=true"]) == Capabilities(
        response_formats=(RESPONSE_FORMAT_DELTA,), include_end_stream_action=True
    )


@each_case(
    "header",
    [
        "",
        ";",
        ";;=;",
        "responseformat",
        "=delta",
        "responseformat=",
        "responseformat=iceberg",
        "asyncquery=maybe",
        "a=b=c",
    ],
)
def test_what_is_malformed_or_unknown_is_ignored(header: str) -> None:
    assert parse([header]) == Capabilities()


@each_case("value", ["false", "yes", "1", "", "true,false"])
def test_end_stream_action_is_included_for_a_plain_true_only(value: str) -> None:
    assert not parse([f"includeEndStreamAction={value}"]).include_end_stream_action


@each_case("key", ["accessModes", "accessMode", "ACCESSMODES", "accessmode"])
def test_access_modes_are_read_under_both_keys_whose_spelling_is_kept(key: str) -> None:
    found = parse([f"{key}=URL,dir"])
    assert found.access_modes == ((ACCESS_MODE_URL, "url"), (ACCESS_MODE_DIR, "dir"))
    assert found.access_key == key


def test_prefix_is_read_as_dir() -> None:
    assert parse(["accessModes=url,prefix"]).access_modes == (
        (ACCESS_MODE_URL, "url"),
        (ACCESS_MODE_DIR, "prefix"),
    )


def test_access_modes_that_are_all_unknown_are_as_none() -> None:
    assert parse(["accessModes=delta,carrier-pigeon"]) == Capabilities()


def test_an_answer_in_parquet_never_contains_the_word_delta() -> None:
    assert render(RESPONSE_FORMAT_PARQUET) == "responseformat=parquet"
    assert render(RESPONSE_FORMAT_UNSPECIFIED) == "responseformat=parquet"


def test_an_answer_in_delta_is_spelled_in_lower_case() -> None:
    assert render(RESPONSE_FORMAT_DELTA) == "responseformat=delta"


def test_an_answer_with_everything() -> None:
    header = render(RESPONSE_FORMAT_PARQUET, "accessModes=url,prefix", end_stream_action=True)
    assert header == "responseformat=parquet;includeendstreamaction=true;accessModes=url,prefix"


@given(st.lists(st.text(max_size=200), max_size=3))
def test_any_header_is_parsed_without_an_error(headers: list[str]) -> None:
    found = parse(headers)
    assert bool(found.access_modes) == bool(found.access_key)
    assert "delta" not in render(RESPONSE_FORMAT_PARQUET, found.access_key).lower()


@given(st.dictionaries(WORDS, st.lists(WORDS, min_size=1), max_size=8))
def test_unknown_keys_do_not_change_what_known_ones_say(unknown: dict[str, list[str]]) -> None:
    known = {"responseformat": ["delta"], "readerfeatures": ["deletionvectors"]}
    keys = {"responseformat", "readerfeatures", "includeendstreamaction", "accessmodes", "accessmode"}
    others = {key: values for key, values in unknown.items() if key.lower() not in keys}
    header = ";".join(f"{key}={','.join(values)}" for key, values in (others | known).items())
    assert parse([header]) == Capabilities(
        response_formats=(RESPONSE_FORMAT_DELTA,), reader_features=("deletionvectors",)
    )


@given(st.lists(WORDS, unique_by=str.lower))
def test_reader_features_arrive_in_lower_case_in_their_order(features: list[str]) -> None:
    found = parse([f"readerfeatures={','.join(features)}"]).to_proto()
    assert list(found.reader_features) == [feature.lower() for feature in features]
