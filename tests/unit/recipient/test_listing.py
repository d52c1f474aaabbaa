from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from sluice_recipient.errors import RecipientError, Refused, Unavailable
from sluice_recipient.listing import NeedsDeltaFormat, SharedFile, join_pages, parse_page

from tests.cases import each_case
from tests.fakes.recipient_transport import NOON

URL = "https://store.example/a?sig=s3cr3t"
FILE = {"url": URL, "id": "a", "size": 3, "partitionValues": {"day": "monday", "hour": None}}
HEADERS = {
    "delta-table-version": "7",
    "delta-sharing-capabilities": "responseformat=parquet;includeendstreamaction=true",
}
END: dict[str, object] = {"endStreamAction": {}}


def body(*lines: object) -> bytes:
    head = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"schemaString": "{}"}}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in [*head, *lines])


def millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def test_a_file_has_its_id_size_and_partition_values():
    page = parse_page(HEADERS, body({"file": FILE}, END))

    assert page.version == 7
    assert page.files == [
        SharedFile(id="a", size=3, partition_values={"day": "monday", "hour": None}),
    ]
    assert page.urls == {"a": URL}


def test_the_earliest_expiration_of_any_file_counts():
    times = [NOON + timedelta(minutes=minutes) for minutes in (50, 40, 60)]
    files = [{"file": FILE | {"id": str(at), "expirationTimestamp": millis(at)}} for at in times]

    assert parse_page(HEADERS, body(*files, END)).expires_at == NOON + timedelta(minutes=40)


def test_the_end_tells_an_expiration_where_files_do_not():
    end = {"endStreamAction": {"minUrlExpirationTimestamp": millis(NOON)}}

    assert parse_page(HEADERS, body({"file": FILE}, end)).expires_at == NOON


def test_the_end_leads_to_the_next_page_and_to_a_refresh():
    end = {"endStreamAction": {"nextPageToken": "next", "refreshToken": "again"}}
    page = parse_page(HEADERS, body(end))

    assert (page.next_page_token, page.refresh_token) == ("next", "again")


def test_an_answer_without_an_end_is_whole_where_none_was_announced():
    page = parse_page({"delta-table-version": "7"}, body({"file": FILE}))

    assert (len(page.files), page.next_page_token, page.expires_at) == (1, None, None)


def test_an_answer_without_the_end_that_was_announced_is_cut_short():
    with pytest.raises(Unavailable, match="cut short"):
        parse_page(HEADERS, body({"file": FILE}))


@each_case(
    ("status", "error"),
    [(400, Refused), (404, Refused), (429, Unavailable), (503, Unavailable), (None, Unavailable)],
)
def test_an_answer_that_ends_with_an_error_is_one(status, error):
    end = {"endStreamAction": {"errorMessage": "made up", "httpStatusErrorCode": status}}

    with pytest.raises(error, match="could not finish"):
        parse_page(HEADERS, body({"file": FILE}, end))


def test_another_format_is_not_taken_for_this_one():
    headers = HEADERS | {"delta-sharing-capabilities": "responseformat=delta;includeendstreamaction=true"}

    with pytest.raises(NeedsDeltaFormat):
        parse_page(headers, body())


@each_case(
    ("headers", "text"),
    [
        ({}, body(END)),
        (HEADERS, b"<html>"),
        (HEADERS, b"[]\n"),
        (HEADERS, b'"x"\n'),
        (HEADERS, b'{"file": {}}\n'),
        (HEADERS, body({"file": {"id": "a", "size": 1}}, END)),
        (HEADERS, body({"file": FILE | {"size": "many"}}, END)),
        (HEADERS, body({"file": FILE | {"expirationTimestamp": 10**30}}, END)),
        (HEADERS, b"[" * 100_000),
    ],
)
def test_what_is_no_list_of_files_is_said_to_be_none_without_quoting_it(headers, text):
    with pytest.raises(RecipientError) as raised:
        parse_page(headers, text)
    assert "s3cr3t" not in f"{raised.value!r}{raised.value.__cause__!r}"


@each_case(
    "url",
    [
        "file:///etc/passwd?s3cr3t",
        "data:text/plain,s3cr3t",
        "ftp://store.example/s3cr3t",
        "s3cr3t",
        "https",
        "https:s3cr3t",
        "",
        None,
    ],
)
@each_case("allows_http", [False, True])
def test_a_file_that_is_not_on_the_web_is_refused_without_quoting_it(url, allows_http):
    text = body({"file": FILE}, {"file": FILE | {"id": "b", "url": url}}, END)

    with pytest.raises(Refused, match="a URL that is not https") as raised:
        parse_page(HEADERS, text, allows_http=allows_http)
    assert "s3cr3t" not in f"{raised.value!r}{raised.value.__cause__!r}"


def test_plain_http_is_refused_unless_it_is_allowed():
    text = body({"file": FILE | {"url": "http://store.example/a"}}, END)

    with pytest.raises(Refused, match="a URL that is not https://;"):
        parse_page(HEADERS, text)
    assert parse_page(HEADERS, text, allows_http=True).urls == {"a": "http://store.example/a"}


def test_pages_are_joined_in_order_with_the_earliest_expiration():
    pages = [
        parse_page(HEADERS, body({"file": FILE | {"id": id_, "expirationTimestamp": millis(at)}}, END))
        for id_, at in (("b", NOON + timedelta(hours=1)), ("a", NOON))
    ]
    listing = join_pages(pages, NOON)

    assert [file.id for file in listing.files] == ["b", "a"]
    assert listing.expires_at == NOON


def test_a_table_without_files_has_an_hour():
    listing = join_pages([parse_page(HEADERS, body(END))], NOON)

    assert listing.expires_at == datetime(2030, 1, 1, 13, tzinfo=UTC)


def test_pages_of_different_versions_are_never_joined():
    pages = [parse_page(HEADERS | {"delta-table-version": version}, body(END)) for version in ("7", "8")]

    with pytest.raises(Unavailable, match="different versions"):
        join_pages(pages, NOON)


def test_urls_and_tokens_stand_in_no_repr():
    end = {"endStreamAction": {"nextPageToken": "s3cr3t", "refreshToken": "s3cr3t"}}
    page = parse_page(HEADERS, body({"file": FILE}, end))

    assert "s3cr3t" not in repr((page, join_pages([page], NOON)))
