from __future__ import annotations

import json
from typing import Any

import pytest
from sluice_recipient.delta_listing import join_delta_pages, parse_delta_page
from sluice_recipient.errors import RecipientError, Refused, Unavailable

from tests.cases import each_case

URL = "https://store.example/a?X-Amz-Date=1&X-Amz-Signature=s3cr3t"
ADD = {"path": URL, "size": 3, "modificationTime": 0, "dataChange": True, "partitionValues": {}}
HEAD: list[dict[str, Any]] = [
    {"protocol": {"deltaProtocol": {"minReaderVersion": 3}}},
    {"metaData": {"version": 7, "deltaMetadata": {"id": "1"}}},
]
HEADERS = {
    "delta-table-version": "7",
    "delta-sharing-capabilities": "responseformat=delta;includeendstreamaction=true",
}
END: dict[str, object] = {"endStreamAction": {}}


def body(*lines: object, head: list[dict[str, Any]] = HEAD) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in [*head, *lines])


def file(**changes: object) -> dict[str, Any]:
    return {"file": {"id": "a", "deltaSingleAction": {"add": ADD | changes}}}


def vector(kind: str, place: str) -> dict[str, Any]:
    return {"deletionVector": {"storageType": kind, "pathOrInlineDv": place, "sizeInBytes": 1}}


def test_the_lines_are_those_that_the_official_client_reads():
    end = {"endStreamAction": {"nextPageToken": "next"}}
    page = parse_delta_page(HEADERS, body(file(**vector("p", URL)), file(**vector("i", "0rr91")), end))

    assert (page.version, page.next_page_token) == (7, "next")
    assert [json.loads(line) for line in page.head] == [
        {"protocol": {"deltaProtocol": {"minReaderVersion": 3}}},
        {"metaData": {"deltaMetadata": {"id": "1"}}},
    ]
    assert [json.loads(line) for line in page.files] == [
        {"file": {"deltaSingleAction": {"add": ADD | vector("p", URL)}}},
        {"file": {"deltaSingleAction": {"add": ADD | vector("i", "0rr91")}}},
    ]


def test_what_was_not_looked_at_is_in_no_line():
    line = {"file": {"deltaSingleAction": {"add": ADD, "remove": {"path": "/etc/passwd"}}, "url": "/etc"}}
    page = parse_delta_page(HEADERS, body(line, {"sidecar": {"path": "/etc/passwd"}}, END))

    assert [json.loads(line) for line in page.files] == [{"file": {"deltaSingleAction": {"add": ADD}}}]


@each_case(
    "name", ["X-Amz-Signature", "sp", "SP", "X-Goog-Credential", "X-OSS-Credential", "X-Databricks-Signature"]
)
def test_every_signature_that_the_official_client_knows_is_taken(name):
    page = parse_delta_page(HEADERS, body(file(path=f"https://store.example/a?b&{name}=1"), END))

    assert len(page.files) == 1


@each_case(
    "url",
    [
        "/etc/s3cr3t",
        "s3cr3t",
        "../s3cr3t",
        "",
        None,
        ["https://store.example/s3cr3t?sp=r"],
        "file:///etc/s3cr3t",
        "file:///etc/s3cr3t?sp=r",
        "ftp://store.example/s3cr3t?sp=r",
        " https://store.example/s3cr3t?sp=r",
        "https:\\\\store.example\\s3cr3t?sp=r",
    ],
)
@each_case("allows_http", [False, True])
def test_a_file_or_vector_that_is_not_on_the_web_is_refused_without_quoting_it(url, allows_http):
    for add in (file(path=url), file(**vector("p", url))):
        with pytest.raises(Refused, match="a URL that is not https") as raised:
            parse_delta_page(HEADERS, body(file(), add, END), allows_http=allows_http)
        assert "s3cr3t" not in f"{raised.value!r}{raised.value.__cause__!r}"


@each_case(
    "url",
    [
        "https://store.example/etc/s3cr3t",
        "https://store.example/etc/s3cr3t?sig=s3cr3t",
        "https://store.example/etc/s3cr3t#?sp=r",
        "https://store.example/etc/s3cr3t?a=b?sp=r",
        "https://store.example/sp=r/s3cr3t",
    ],
)
def test_a_url_that_the_official_client_takes_for_a_path_is_refused_without_quoting_it(url):
    for add in (file(path=url), file(**vector("p", url))):
        with pytest.raises(Refused, match="a URL that is not signed") as raised:
            parse_delta_page(HEADERS, body(file(), add, END))
        assert "s3cr3t" not in f"{raised.value!r}{raised.value.__cause__!r}"


def test_a_vector_that_lies_beside_the_log_is_refused():
    """There the log is one on this machine."""
    with pytest.raises(Refused, match="a URL that is not https"):
        parse_delta_page(HEADERS, body(file(**vector("u", "../../ab^-aqEH.-t@S}K{vb[*k^")), END))


def test_plain_http_is_refused_unless_it_is_allowed():
    text = body(file(path="http://store.example/a?sp=r"), END)

    with pytest.raises(Refused, match="a URL that is not https://;"):
        parse_delta_page(HEADERS, text)
    assert len(parse_delta_page(HEADERS, text, allows_http=True).files) == 1


def test_an_answer_without_the_end_that_was_announced_is_cut_short():
    with pytest.raises(Unavailable, match="cut short"):
        parse_delta_page(HEADERS, body(file()))


@each_case(
    ("headers", "text"),
    [
        ({}, body(END)),
        (HEADERS | {"delta-sharing-capabilities": "responseformat=parquet"}, body(END)),
        ({"delta-table-version": "7"}, body(END)),
        (HEADERS, b"<html>"),
        (HEADERS, body(END, head=HEAD[:1])),
        (HEADERS, body(END, head=HEAD[1:])),
        (HEADERS, body({"file": {"url": URL, "id": "a", "size": 1}}, END)),
        (HEADERS, body({"file": {"deltaSingleAction": {"remove": ADD}}}, END)),
        (HEADERS, body(file(deletionVector="s3cr3t"), END)),
        (HEADERS, body(file(deletionVector={}), END)),
    ],
)
def test_what_is_no_list_of_files_is_said_to_be_none_without_quoting_it(headers, text):
    with pytest.raises(RecipientError, match="no list of files") as raised:
        parse_delta_page(headers, text)
    assert "s3cr3t" not in f"{raised.value!r}{raised.value.__cause__!r}"


def test_pages_are_joined_in_order_below_one_head():
    pages = [parse_delta_page(HEADERS, body(file(size=size), END)) for size in (1, 2)]
    lines = [json.loads(line) for line in join_delta_pages(pages)]

    assert [next(iter(line)) for line in lines] == ["protocol", "metaData", "file", "file"]
    assert [line["file"]["deltaSingleAction"]["add"]["size"] for line in lines[2:]] == [1, 2]


def test_pages_of_different_versions_are_never_joined():
    pages = [
        parse_delta_page(HEADERS | {"delta-table-version": version}, body(END)) for version in ("7", "8")
    ]

    with pytest.raises(Unavailable, match="different versions"):
        join_delta_pages(pages)


def test_urls_stand_in_no_repr():
    assert "s3cr3t" not in repr(parse_delta_page(HEADERS, body(file(), END)))
