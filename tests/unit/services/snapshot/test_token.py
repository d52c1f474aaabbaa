from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.grant import Audience, Grant
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.errors import InvalidArgument, Unsupported
from gateway.services.snapshot.token import (
    MAX_LENGTH,
    Binding,
    ChangePosition,
    FilePosition,
    FileTokens,
    Pin,
    bind,
    require_table,
)
from gateway.v1 import snapshot_pb2 as pb
from tests.cases import each_case

PARQUET, DELTA = pb.RESPONSE_FORMAT_PARQUET, pb.RESPONSE_FORMAT_DELTA
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
PAGE = Keys(current=Key(id="page", secret=b"1" * 32))
REFRESH = Keys(current=Key(id="refresh", secret=b"2" * 32))
BINDING = Binding(table_id="t", location="s3://b/t", principal="ann", shape="s")
FILES = FilePosition(version=7, path="day=1/part-0.parquet", vector_id="", limit=None)
CHANGES = ChangePosition(start=1, end=9, version=4, index=1000)
PIN = Pin(version=7, table="orders")

numbers = st.integers(0, 2**63 - 1)
paths = st.text(max_size=60)
file_positions = st.builds(
    FilePosition, version=numbers, path=paths, vector_id=paths, limit=st.none() | numbers, table=paths
)
change_positions = st.builds(
    ChangePosition, start=numbers, end=numbers, version=numbers, index=numbers, table=paths
)
pins = st.builds(Pin, version=numbers, table=paths)


def tokens(at: datetime = NOON, page_keys: Keys = PAGE, refresh_keys: Keys = REFRESH) -> FileTokens:
    return FileTokens(
        page_keys=page_keys,
        refresh_keys=refresh_keys,
        page_life=timedelta(hours=72),
        refresh_life=timedelta(hours=24),
        clock=lambda: at,
    )


def grant(**changes: Any) -> Grant:
    facts: dict[str, Any] = {
        "principal": "ann",
        "audience": Audience.SNAPSHOT,
        "table": TableName("share", "schema", "table"),
        "table_id": "t",
        "location": parse_location("s3://b/t"),
        "access_modes": (AccessMode.URL,),
        "history_shared": True,
        "generation": "1",
        "expires_at": NOON + timedelta(seconds=60),
    }
    return Grant(**(facts | changes))


@given(file_positions)
def test_a_page_token_opens_to_the_file_that_it_was_made_of(position: FilePosition) -> None:
    token = tokens().make_page(position, BINDING)
    assert tokens().open_page(token, BINDING, FilePosition) == position
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


@given(change_positions)
def test_a_page_token_opens_to_the_change_that_it_was_made_of(position: ChangePosition) -> None:
    token = tokens().make_page(position, BINDING)
    assert tokens().open_page(token, BINDING, ChangePosition) == position
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


@given(pins)
def test_a_refresh_token_opens_to_the_version_that_it_pins(pin: Pin) -> None:
    token = tokens().make_refresh(pin, BINDING)
    assert tokens().open_refresh(token, BINDING) == pin
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


@given(file_positions, st.integers(0), st.integers(0, 5))
def test_a_page_token_with_any_bit_flipped_is_refused(position: FilePosition, place: int, bit: int) -> None:
    token = bytearray(tokens().make_page(position, BINDING).encode())
    token[place % len(token)] ^= 1 << bit
    with pytest.raises(InvalidArgument):
        tokens().open_page(token.decode(), BINDING, FilePosition)


@given(pins, st.integers(0), st.integers(0, 5))
def test_a_refresh_token_with_any_bit_flipped_is_refused(pin: Pin, place: int, bit: int) -> None:
    token = bytearray(tokens().make_refresh(pin, BINDING).encode())
    token[place % len(token)] ^= 1 << bit
    with pytest.raises(InvalidArgument):
        tokens().open_refresh(token.decode(), BINDING)


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        tokens().open_page(text, BINDING, FilePosition)
    with pytest.raises(InvalidArgument):
        tokens().open_refresh(text, BINDING)


@pytest.mark.parametrize(
    "change", [lambda token: token[:-2], lambda token: f"{token}AA"], ids=["cut", "grown"]
)
def test_a_token_that_is_cut_or_grown_is_refused(change: Callable[[str], str]) -> None:
    with pytest.raises(InvalidArgument):
        tokens().open_page(change(tokens().make_page(FILES, BINDING)), BINDING, FilePosition)
    with pytest.raises(InvalidArgument):
        tokens().open_page(change(tokens().make_page(CHANGES, BINDING)), BINDING, ChangePosition)
    with pytest.raises(InvalidArgument):
        tokens().open_refresh(change(tokens().make_refresh(PIN, BINDING)), BINDING)


@each_case("field", ["table_id", "location", "principal", "shape"])
def test_a_page_token_of_another_table_recipient_or_question_is_refused(field: str) -> None:
    token = tokens().make_page(FILES, BINDING)
    with pytest.raises(InvalidArgument, match="page token is not valid"):
        tokens().open_page(token, replace(BINDING, **{field: "other"}), FilePosition)


@pytest.mark.parametrize("field", ["table_id", "location", "principal"])
def test_a_refresh_token_of_another_table_or_recipient_is_refused(field: str) -> None:
    token = tokens().make_refresh(PIN, BINDING)
    with pytest.raises(InvalidArgument, match="refresh token is not valid"):
        tokens().open_refresh(token, replace(BINDING, **{field: "other"}))


def test_a_refresh_token_is_good_for_other_predicates() -> None:
    token = tokens().make_refresh(PIN, BINDING)
    assert tokens().open_refresh(token, replace(BINDING, shape="other")) == PIN


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (replace(FILES, table="orders"), "page token is not valid"),
        (replace(CHANGES, table="orders"), "page token is not valid"),
        (PIN, "refresh token is not valid for this table"),
    ],
)
def test_a_token_is_refused_where_another_table_is_in_the_place_of_its_own(
    content: FilePosition | ChangePosition | Pin, refusal: str
) -> None:
    require_table(content, "orders")
    with pytest.raises(InvalidArgument, match=refusal):
        require_table(content, "returns")


def test_tokens_of_the_two_kinds_of_pages_are_not_mixed_up() -> None:
    with pytest.raises(InvalidArgument):
        tokens().open_page(tokens().make_page(FILES, BINDING), BINDING, ChangePosition)
    with pytest.raises(InvalidArgument):
        tokens().open_page(tokens().make_page(CHANGES, BINDING), BINDING, FilePosition)


def test_a_page_token_is_no_refresh_token_even_with_one_key_for_both() -> None:
    same = tokens(refresh_keys=PAGE)
    with pytest.raises(InvalidArgument):
        same.open_refresh(same.make_page(FILES, BINDING), BINDING)
    with pytest.raises(InvalidArgument):
        same.open_page(same.make_refresh(PIN, BINDING), BINDING, FilePosition)


def test_a_page_token_lives_as_long_as_it_is_said_to() -> None:
    token = tokens().make_page(FILES, BINDING)
    in_time, late = NOON + timedelta(hours=72, milliseconds=-1), NOON + timedelta(hours=72)
    assert tokens(in_time).open_page(token, BINDING, FilePosition) == FILES
    with pytest.raises(InvalidArgument, match="has expired"):
        tokens(late).open_page(token, BINDING, FilePosition)


def test_a_refresh_token_lives_as_long_as_it_is_said_to() -> None:
    token = tokens().make_refresh(PIN, BINDING)
    in_time, late = NOON + timedelta(hours=24, milliseconds=-1), NOON + timedelta(hours=24)
    assert tokens(in_time).open_refresh(token, BINDING) == PIN
    with pytest.raises(InvalidArgument, match="has expired"):
        tokens(late).open_refresh(token, BINDING)


def test_tokens_of_the_previous_key_are_still_believed() -> None:
    new = Keys(current=Key(id="new", secret=b"3" * 32), previous=PAGE.current)
    assert tokens(page_keys=new).open_page(tokens().make_page(FILES, BINDING), BINDING, FilePosition) == FILES
    with pytest.raises(InvalidArgument):
        tokens().open_page(tokens(page_keys=new).make_page(FILES, BINDING), BINDING, FilePosition)


def test_the_refusal_does_not_tell_what_is_wrong_with_the_token() -> None:
    forged, old = tokens(page_keys=REFRESH).make_page(FILES, BINDING), tokens().make_page(FILES, BINDING)
    messages = set()
    for token, at in ((forged, NOON), (old, NOON + timedelta(days=9)), ("x", NOON), ("A" * 10**6, NOON)):
        with pytest.raises(InvalidArgument) as caught:
            tokens(at).open_page(token, BINDING, FilePosition)
        messages.add(caught.value.message)
    assert len(messages) == 1


def test_a_path_of_four_kilobytes_fits_whatever_it_is_made_of() -> None:
    for path in ("a" * 4096, "é" * 2048, "\u2028" * 1365, "\\" * 4096, "\x01" * 4096, "\U0001f600" * 1024):
        position = replace(FILES, path=path)
        assert tokens().open_page(tokens().make_page(position, BINDING), BINDING, FilePosition) == position


def test_a_path_beyond_all_measure_cannot_be_paged_by() -> None:
    with pytest.raises(Unsupported, match="query it without maxFiles"):
        tokens().make_page(replace(FILES, path="a" * MAX_LENGTH), BINDING)


def can_read(*formats: pb.ResponseFormat.ValueType) -> pb.ReaderCapabilities:
    return pb.ReaderCapabilities(response_formats=formats, reader_features=["a", "b"])


QUERY = pb.QueryRequest(
    grant="g",
    capabilities=pb.ReaderCapabilities(response_formats=[DELTA, PARQUET], reader_features=["b", "a"]),
    predicate_hints=["a = 1"],
    json_predicate_hints="{}",
    limit_hint=5,
)


def changed(**changes: Any) -> pb.QueryRequest:
    request = pb.QueryRequest(**changes)
    merged = pb.QueryRequest()
    merged.CopyFrom(QUERY)
    for field, _ in request.ListFields():
        merged.ClearField(field.name)  # type: ignore[arg-type]  # a field that it has
    merged.MergeFrom(request)
    return merged


@each_case(
    "changes",
    [
        {"grant": "another of the same"},
        {"max_files": 9},
        {"page_token": "x"},
        {"refresh_token": "x"},
        {"include_refresh_token": True},
        {
            "capabilities": pb.ReaderCapabilities(
                response_formats=[PARQUET, DELTA], reader_features=["a", "b"]
            )
        },
    ],
)
def test_what_shapes_no_line_may_differ_from_page_to_page(changes: dict[str, Any]) -> None:
    assert bind(grant(), changed(**changes)) == bind(grant(), QUERY)


@each_case(
    "changes",
    [
        {"capabilities": can_read(DELTA)},
        {"at": pb.TableAt(version=0)},
        {"at": pb.TableAt(timestamp="2026-01-01T00:00:00Z")},
        {"file_id_hash": pb.FILE_ID_HASH_DELTA},
        {"predicate_hints": ["a = 2"]},
        {"json_predicate_hints": "{ }"},
        {"limit_hint": 6},
        {"starting_version": 0},
        {"starting_version": 0, "ending_version": 0},
        {"starting_version": 0, "include_historical_protocol": True},
    ],
)
def test_what_shapes_an_answer_is_bound(changes: dict[str, Any]) -> None:
    assert bind(grant(), changed(**changes)) != bind(grant(), QUERY)


@pytest.mark.parametrize(
    "changes", [{"table_id": "u"}, {"principal": "bob"}, {"location": parse_location("s3://b/u")}]
)
def test_the_table_and_the_recipient_are_bound(changes: dict[str, Any]) -> None:
    assert bind(grant(**changes), QUERY) != bind(grant(), QUERY)


def test_a_query_and_changes_are_not_the_same_question() -> None:
    assert bind(grant(), pb.QueryRequest()) != bind(grant(), pb.ChangesRequest())


@each_case(
    "changes",
    [
        {"start": pb.TableAt(version=1)},
        {"end": pb.TableAt(version=1)},
        {"include_historical_metadata": True},
        {"include_historical_protocol": True},
    ],
)
def test_what_shapes_changes_is_bound(changes: dict[str, Any]) -> None:
    request = pb.ChangesRequest(start=pb.TableAt(version=0))
    other = pb.ChangesRequest(**({"start": pb.TableAt(version=0)} | changes))
    assert bind(grant(), other) != bind(grant(), request)


def test_binding_leaves_the_request_as_it_is() -> None:
    before = QUERY.SerializeToString(deterministic=True)
    bind(grant(), QUERY)
    assert QUERY.SerializeToString(deterministic=True) == before
