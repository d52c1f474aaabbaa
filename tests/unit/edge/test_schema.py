from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.schema import QueryBody, parse_credentials_body, parse_query_body, read_body
from gateway.errors import GatewayError, InvalidArgument
from tests.cases import each_case
from tests.fakes.http_connection import MemoryTransport

JSON = {"Content-Type": "application/json; charset=utf-8"}
SECOND = timedelta(seconds=1)


def request(headers: dict[str, str] | None = None, payload: StreamReader | None = None) -> web.Request:
    arguments: dict[str, Any] = {} if payload is None else {"payload": payload}
    return make_mocked_request("POST", "/", headers or {}, **arguments)


def parse(value: object) -> QueryBody:
    return parse_query_body(request(JSON), json.dumps(value).encode())


def stream(*pieces: bytes, end: bool = True) -> StreamReader:
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(MemoryTransport())
    reader = StreamReader(protocol, 2**16, loop=loop)
    for piece in pieces:
        reader.feed_data(piece)
    if end:
        reader.feed_eof()
    return reader


SNAPSHOT = {
    "predicateHints": ["a = 1"],
    "jsonPredicateHints": "{}",
    "limitHint": 10,
    "endingVersion": 9,
    "maxFiles": 5,
    "includeRefreshToken": True,
    "refreshToken": "r",
}
STREAM = {"startingVersion": 3, "endingVersion": 9, "includeHistoricalProtocol": True, "pageToken": "p"}


@each_case("body", [SNAPSHOT, STREAM, {"version": 3}, {"timestamp": "2022-01-01T00:00:00Z"}])
def test_every_field_is_read(body: dict[str, Any]) -> None:
    assert parse(body) == QueryBody(**body)


@each_case("body", [b"", b"  \n", b"{}", b'{"unknown": [1, {"deep": null}]}', b'{"version": null}'])
def test_nothing_an_empty_object_and_unknown_fields_are_fine(body: bytes) -> None:
    assert parse_query_body(request(JSON), body) == QueryBody()


@each_case(
    "body",
    [
        b"null",
        b"[]",
        b"1",
        b'"text"',
        b"{",
        b"{]",
        b"\xff",
        b"\xff\xfe",
        b"x",
        b"{}{}",
        b'{"limitHint": []}',
        b'{"version": "1"}',
        b'{"version": 1.5}',
        b'{"version": true}',
        b'{"limitHint": "many"}',
        b'{"predicateHints": "a = 1"}',
        b'{"predicateHints": [1]}',
        b'{"jsonPredicateHints": {"op": "and"}}',
        b'{"timestamp": 1650000000}',
        b'{"includeRefreshToken": "yes"}',
        b'{"timestamp": "\\ud800"}',
        b"[" * 100_000,
    ],
)
def test_what_is_not_json_or_of_the_wrong_type_is_malformed(body: bytes) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_query_body(request(JSON), body)
    assert caught.value.error_code == "MALFORMED_REQUEST"


@each_case("body", [b"{", b'{"version": 1,}', b"{'version': 1}", b"version=1"])
def test_what_is_not_json_is_told_with_the_position(body: bytes) -> None:
    with pytest.raises(InvalidArgument, match=r"is not valid JSON: .* at line 1 column \d+"):
        parse_query_body(request(JSON), body)


def test_json_that_is_no_object_is_told_apart() -> None:
    with pytest.raises(InvalidArgument, match="must be a JSON object"):
        parse_query_body(request(JSON), b"[]")


@each_case("field", ["version", "limitHint"])
@each_case("value", [-1, 2**63])
def test_a_number_out_of_range_is_an_invalid_value_and_is_named(field: str, value: int) -> None:
    with pytest.raises(InvalidArgument, match=field) as caught:
        parse({field: value})
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"


@each_case(
    "fields",
    [
        ("version", "timestamp"),
        ("version", "startingVersion"),
        ("timestamp", "startingVersion"),
        ("version", "timestamp", "startingVersion"),
    ],
)
def test_two_states_of_the_table_are_refused(fields: tuple[str, ...]) -> None:
    body = {field: "2022-01-01T00:00:00Z" if field == "timestamp" else 1 for field in fields}
    with pytest.raises(
        InvalidArgument, match="Please only provide one of: version, timestamp, startingVersion"
    ):
        parse(body)


@each_case("field", [{"includeRefreshToken": True}, {"refreshToken": "x"}])
@each_case("point", [{"version": 1}, {"timestamp": "2022-01-01T00:00:00Z"}, {"startingVersion": 0}])
def test_a_refresh_of_a_version_that_is_named_is_refused(
    field: dict[str, Any], point: dict[str, Any]
) -> None:
    (name,) = field
    with pytest.raises(InvalidArgument, match=f"{name} cannot be used when querying a specific version"):
        parse(field | point)


@pytest.mark.parametrize("field", [{"includeRefreshToken": True}, {"refreshToken": "x"}])
def test_a_refresh_of_a_later_page_is_refused(field: dict[str, Any]) -> None:
    (name,) = field
    with pytest.raises(
        InvalidArgument, match=f"{name} must be used in the first page request; leave it out of later pages"
    ):
        parse(field | {"pageToken": "x"})


@each_case(
    "body",
    [
        {"version": 1, "includeRefreshToken": False},
        {"version": 1, "refreshToken": ""},
        {"pageToken": "x", "refreshToken": "", "includeRefreshToken": None},
        {"pageToken": "", "includeRefreshToken": True},
        {"idempotencyKey": "", "idempotency_key": None},
    ],
)
def test_what_says_nothing_contradicts_nothing(body: dict[str, Any]) -> None:
    parse(body)


@pytest.mark.parametrize("value", [0, -1, 2**31])
def test_a_page_has_one_file_at_least(value: int) -> None:
    with pytest.raises(InvalidArgument, match="maxFiles") as caught:
        parse({"maxFiles": value})
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"


@pytest.mark.parametrize("field", ["pageToken", "refreshToken"])
def test_a_token_is_a_string(field: str) -> None:
    values: list[Any] = [1, True, [], {}]
    for value in values:
        with pytest.raises(InvalidArgument, match=field) as caught:
            parse({field: value})
        assert caught.value.error_code == "MALFORMED_REQUEST"


def test_an_error_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse({"version": "a-secret"})
    assert "a-secret" not in caught.value.message


@each_case(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/xml",
        "application/json; charset=latin-1",
        "json",
    ],
)
def test_another_content_type_is_refused(content_type: str) -> None:
    with pytest.raises(web.HTTPUnsupportedMediaType) as caught:
        parse_query_body(request({"Content-Type": content_type}), b"{}")
    assert "send Content-Type: application/json" in caught.value.reason


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=UTF-8", None])
def test_json_and_no_content_type_at_all_are_accepted(content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    assert parse_query_body(request(headers), b"{}") == QueryBody()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_any_json_is_parsed_or_refused_as_the_clients_fault(value: object) -> None:
    for body in (value, {"version": value}, {"predicateHints": value}):
        try:
            parse(body)
        except GatewayError as error:
            assert isinstance(error, InvalidArgument)  # noqa: PT017 -- success is fine as well


async def test_a_body_is_read_piece_by_piece() -> None:
    assert await read_body(request(JSON, stream(b"{", b"}")), 10, SECOND) == b"{}"


async def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    asked = request({**JSON, "Content-Length": "11"}, stream(end=False))
    with pytest.raises(web.HTTPRequestEntityTooLarge):
        await read_body(asked, 10, SECOND)


async def test_a_body_that_does_not_end_is_given_up() -> None:
    with pytest.raises(web.HTTPRequestTimeout):
        await read_body(request(JSON, stream(b"{", end=False)), 10, timedelta(milliseconds=1))


async def test_a_compressed_body_is_refused() -> None:
    asked = request({**JSON, "Content-Encoding": "gzip"}, stream(b"\x1f\x8b"))
    with pytest.raises(web.HTTPUnsupportedMediaType):
        await read_body(asked, 10, SECOND)


NULLABLE = st.none() | st.text(st.characters(exclude_categories=["Cs"]))


@given(location=NULLABLE, auxiliary=NULLABLE, others=st.dictionaries(st.text(min_size=20), st.integers()))
def test_a_body_for_credentials_means_one_location_or_is_refused(
    location: str | None, auxiliary: str | None, others: dict[str, int]
) -> None:
    body = json.dumps(others | {"location": location, "auxiliaryLocation": auxiliary}).encode()
    named = {text for text in (location, auxiliary) if text is not None}
    if len(named) > 1:
        with pytest.raises(InvalidArgument, match="Please only provide one of"):
            parse_credentials_body(request(JSON), body)
    else:
        assert parse_credentials_body(request(JSON), body) == next(iter(named), None)


@given(body=st.binary(max_size=200))
def test_any_body_for_credentials_is_understood_or_refused(body: bytes) -> None:
    with contextlib.suppress(GatewayError):
        found = parse_credentials_body(request(JSON), body)
        assert found is None or json.loads(body)


@each_case(
    "body",
    [
        b'{"location":"a","location":"a"}',
        b'{"location":null,"location":"a"}',
        b'{"auxiliaryLocation":"a","auxiliaryLocation":"b"}',
        b'{"locati\\u006fn":"a","location":"b"}',
        b'{"x":{"y":1,"y":2}}',
        b"[" * 100_000,
        b'{"x":' * 100_000,
    ],
)
def test_a_body_for_credentials_that_says_something_twice_or_too_deep_is_malformed(body: bytes) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_credentials_body(request(JSON), body)
    assert caught.value.error_code == "MALFORMED_REQUEST"


@pytest.mark.parametrize("name", ["location", "auxiliaryLocation"])
def test_a_location_in_the_query_is_refused_even_if_it_is_empty(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{name} belongs in the request body"):
        parse_credentials_body(make_mocked_request("POST", f"/?{name}="), b"")
