from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.location import parse_location
from gateway.errors import InvalidArgument
from tests.cases import each_case
from tests.hypothesis_profiles import examples
from tests.unit.vendors.azure.doubles import delegation_key
from tests.unit.vendors.azure.sdk import sdk_sas
from vendors.azure.sas import SasResource, sign_sas

START = datetime(2026, 1, 2, 2, 59, 5, tzinfo=UTC)
EXPIRY = datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)
KEY = delegation_key(starts_at=START)
CORRELATION = "0b9b8f6c-9a43-5f0f-8d2c-5d2f1f0c7a11"

# Made by the SDK for data lakes, whose release of that time signed the version that we sign.
VECTORS = json.loads(Path(__file__).with_name("sas_vectors.json").read_text(encoding="utf-8"))["vectors"]


def fields(path: str, *, account="lakeaccount", container="tables", correlation_id="") -> dict[str, str]:
    resource = SasResource(account=account, container=container, path=path)
    token = sign_sas(resource, KEY, starts_at=START, expires_at=EXPIRY, correlation_id=correlation_id)
    return dict(parse_qsl(token, strict_parsing=True))


@st.composite
def table_paths(draw):
    """Paths that a location may have: whatever it refuses is not signed."""
    segment = st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="/\\"),
        min_size=1,
        max_size=6,
    )
    path = "/".join(draw(st.lists(segment, min_size=1, max_size=5)))
    try:
        return parse_location(f"abfss://tables@lakeaccount.dfs.core.windows.net/{path}").path or "t"
    except InvalidArgument:
        return "t/" + "/".join(str(len(part)) for part in path.split("/"))


def sdk_fields(path: str, correlation_id: str) -> dict[str, str]:
    token = sdk_sas(
        path,
        KEY,
        permission="rl",
        start=START,
        expiry=EXPIRY,
        protocol="https",
        is_directory=True,
        correlation_id=correlation_id or None,
    )
    return dict(parse_qsl(token, strict_parsing=True))


@each_case("vector", VECTORS, ids=lambda vector: vector["path"] or "container")
def test_sas_is_the_one_that_the_data_lake_sdk_made(vector):
    assert fields(vector["path"], correlation_id=vector["correlation_id"]) == vector["fields"]


def test_vectors_cover_directories_containers_and_correlation_ids():
    assert {vector["fields"]["sr"] for vector in VECTORS} == {"c", "d"}
    assert {bool(vector["correlation_id"]) for vector in VECTORS} == {True, False}
    assert "%41bc" in {vector["path"] for vector in VECTORS}


@settings(max_examples=examples(20))
@given(path=table_paths(), correlation_id=st.sampled_from(["", CORRELATION]))
def test_directory_sas_is_the_one_that_the_blob_sdk_makes(path, correlation_id):
    assert fields(path, correlation_id=correlation_id) == sdk_fields(path, correlation_id)


@settings(deadline=None)
@given(path=table_paths())
def test_depth_is_the_number_of_segments(path):
    assert fields(path)["sdd"] == str(len(path.split("/")))


@settings(deadline=None)
@given(path=table_paths(), other=table_paths())
def test_two_directories_never_share_a_signature(path, other):
    assert (fields(path)["sig"] == fields(other)["sig"]) == (path == other)


@each_case("other", ["a", "a/b/c", "a/b2", "A/b", "a/%62"])
def test_signature_is_not_that_of_a_parent_child_sibling_or_alias(other):
    assert fields("a/b")["sig"] != fields(other)["sig"]


def test_container_and_account_are_signed():
    first = fields("a/b")["sig"]

    assert fields("a/b", container="tables2")["sig"] != first
    assert fields("a/b", account="lakeaccount2")["sig"] != first


def test_sas_reads_and_lists_and_needs_https():
    found = fields("a/b")

    assert (found["sp"], found["spr"], found["sr"]) == ("rl", "https", "d")


def test_container_sas_has_no_depth():
    found = fields("")

    assert found["sr"] == "c"
    assert "sdd" not in found


def test_correlation_id_is_left_out_where_there_is_none():
    assert "scid" not in fields("a/b")
    assert fields("a/b", correlation_id=CORRELATION)["scid"] == CORRELATION


def test_fractions_of_a_second_are_cut_off():
    resource = SasResource(account="lakeaccount", container="tables", path="t")
    token = sign_sas(resource, KEY, starts_at=START, expires_at=EXPIRY + timedelta(milliseconds=999))

    assert dict(parse_qsl(token))["se"] == "2026-01-02T04:04:05Z"


def test_token_has_no_question_mark_and_no_bare_reserved_character():
    resource = SasResource(account="lakeaccount", container="tables", path="t")
    token = sign_sas(resource, KEY, starts_at=START, expires_at=EXPIRY)

    assert not set(token) & set("?#+/: ")
