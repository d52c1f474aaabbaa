from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sluice_recipient.address import TableName
from sluice_recipient.client import GatewayClient, TableInfo
from sluice_recipient.errors import AccessDenied, NotFound, ProfileError, RecipientError, Refused, Unavailable
from sluice_recipient.profile import parse_profile
from sluice_recipient.transport import Response

from tests.cases import each_case
from tests.fakes.recipient_transport import (
    NOON,
    PROFILE,
    SECRETS,
    TOKEN,
    FakeTransport,
    aws_answer,
    by_path,
    error,
    lines,
    metadata,
    ok,
    unreachable,
)

ORDERS = TableName(share="sales", schema="shop", table="orders")
TABLE = "/shares/sales/schemas/shop/tables/orders"
ASKED_ON = AssertionError("asked on where it should have ended")


class Client(GatewayClient):
    """A client that notes how long it would have slept."""

    def __init__(self, *answers, profile=PROFILE, now=NOON):
        self.slept: list[float] = []
        self.transport = FakeTransport(*answers)
        super().__init__(parse_profile(profile), self.transport, clock=lambda: now, sleep=self.slept.append)


def test_a_credential_is_asked_for_without_a_body():
    client = Client(aws_answer())

    assert client.credential(ORDERS).location == "s3://lake/orders"
    (request,) = client.transport.requests
    assert (request.method, client.transport.paths) == ("POST", [f"{TABLE}/temporary-table-credentials"])
    assert request.body is None
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert "Content-Type" not in request.headers


def test_an_auxiliary_location_is_named_in_the_body():
    client = Client(aws_answer())
    client.credential(ORDERS, "s3://other/part")

    (request,) = client.transport.requests
    assert json.loads(request.body or b"") == {"location": "s3://other/part"}
    assert request.headers["Content-Type"] == "application/json"


def test_a_table_is_described_by_its_metadata():
    client = Client(metadata(auxiliaryLocations=["s3://other/part"]))

    assert client.describe(ORDERS) == TableInfo(
        name=ORDERS,
        access_modes=frozenset({"url", "dir"}),
        location="s3://lake/orders",
        auxiliary_locations=("s3://other/part",),
    )


def test_a_table_is_described_in_one_call_whichever_format_the_server_has():
    client = Client(metadata())
    client.describe(ORDERS)

    (request,) = client.transport.requests
    capabilities = dict(part.split("=") for part in request.headers["delta-sharing-capabilities"].split(";"))
    assert set(capabilities["responseformat"].split(",")) == {"delta", "parquet"}
    assert set(capabilities["accessModes"].split(",")) == {"url", "dir"}


@pytest.mark.parametrize("where", ["beside", "below"])
def test_metadata_in_the_delta_format_is_understood(where):
    told = {"location": "s3://lake/orders", "accessModes": ["dir"]}
    table = {"id": "1", "format": {"provider": "parquet"}}
    action = {"deltaMetadata": table, **told} if where == "beside" else {"deltaMetadata": table | told}
    client = Client(lines([{"protocol": {"deltaProtocol": {}}}, {"metaData": action}]))

    info = client.describe(ORDERS)

    assert (info.access_modes, info.location) == (frozenset({"dir"}), "s3://lake/orders")
    assert len(client.transport.requests) == 1


def test_a_server_that_names_no_modes_has_url_only():
    info = Client(metadata(accessModes=None, location=None)).describe(ORDERS)

    assert (info.access_modes, info.location) == (frozenset({"url"}), None)


def test_the_list_is_asked_when_the_metadata_is_refused():
    listed = {"name": "Orders", "location": "s3://lake/orders", "accessModes": ["dir"]}
    first_page = ok({"items": [{"name": "other"}], "nextPageToken": "a b"})
    client = Client(error(400), first_page, ok({"items": [listed]}))

    assert client.describe(ORDERS).access_modes == {"dir"}
    assert client.transport.paths[1:] == [
        "/shares/sales/schemas/shop/tables",
        "/shares/sales/schemas/shop/tables?pageToken=a+b",
    ]


def test_the_list_is_asked_when_the_log_is_out_of_reach():
    listed = {"name": "Orders", "location": "s3://lake/orders", "accessModes": ["dir"]}
    # Tried as often as any call that may yet succeed.
    client = Client(*[error(503)] * 4, ok({"items": [listed]}))

    assert client.describe(ORDERS).access_modes == {"dir"}


def test_a_table_that_the_list_does_not_have_is_not_found():
    with pytest.raises(NotFound, match=r"sales\.shop\.orders"):
        Client(error(400), ok({})).describe(ORDERS)


def test_all_tables_of_all_shares_are_listed():
    table = {"share": "sales", "schema": "shop", "name": "orders", "accessModes": ["dir"]}
    client = Client(by_path(shares=ok({"items": [{"name": "sales"}]}), all_tables=ok({"items": [table]})))

    assert [info.name for info in client.tables()] == [ORDERS]


@each_case(
    ("status", "kind", "advice"),
    [
        (400, Refused, "made up"),
        (401, AccessDenied, "profile"),
        (403, AccessDenied, "ask whoever gave you the profile"),
        (404, NotFound, "sluice-recipient tables"),
    ],
)
def test_what_will_not_change_is_asked_once(status, kind, advice):
    client = Client(error(status))

    with pytest.raises(kind, match=advice):
        client.credential(ORDERS)
    assert len(client.transport.requests) == 1


@each_case(
    ("status", "message"),
    [
        (503, "the storage does not issue a credential in time; try again later"),
        (503, "Please retry"),
        (403, "recipient 'acme' is disabled, please contact your share provider"),
        (401, "the token has expired; ask your share provider for a new profile"),
    ],
)
def test_advice_of_the_gateway_is_not_followed_by_another(status, message):
    with pytest.raises(RecipientError) as raised:
        Client(error(status, message)).credential(ORDERS)

    assert str(raised.value) == f"{message} (HTTP {status})"


def test_whatever_a_gateway_says_of_a_table_that_is_not_there_the_list_is_pointed_to():
    with pytest.raises(NotFound, match=r"provider \(HTTP 404\); `sluice-recipient tables PROFILE` lists"):
        Client(error(404, "table 'a' does not exist, please contact your share provider")).credential(ORDERS)


def test_a_gateway_that_says_nothing_is_spoken_for():
    with pytest.raises(Unavailable) as raised:
        Client(error(503, "")).credential(ORDERS)

    assert str(raised.value) == "the gateway refuses (HTTP 503); try again later"


@each_case("status", [429, 500, 502, 503, 504])
def test_a_busy_gateway_is_asked_again(status):
    client = Client(error(status), error(status), aws_answer())

    assert client.credential(ORDERS).location
    assert client.slept == [0.5, 1.0]


def test_a_connection_that_fails_is_tried_again():
    client = Client(unreachable(), aws_answer())

    assert client.credential(ORDERS).location
    assert client.slept == [0.5]


@pytest.mark.parametrize("answer", [error(503), unreachable()])
def test_in_the_end_it_gives_up(answer):
    client = Client(answer)

    with pytest.raises(Unavailable):
        client.credential(ORDERS)
    assert len(client.transport.requests) == 4


def test_it_waits_as_long_as_the_gateway_asks():
    client = Client(error(429, retry_after="7"), aws_answer())
    client.credential(ORDERS)

    assert client.slept == [7.0]


def test_it_does_not_wait_for_minutes():
    client = Client(error(429, retry_after="3600"))

    with pytest.raises(Unavailable, match="HTTP 429"):
        client.credential(ORDERS)
    assert client.slept == []


@pytest.mark.parametrize("header", ["Fri, 31 Dec 2030 23:59:59 GMT", "nan", "-1"])
def test_a_wait_that_is_no_number_of_seconds_is_not_followed(header):
    client = Client(error(503, retry_after=header), aws_answer())
    client.credential(ORDERS)

    assert client.slept == [0.5]


def test_an_expired_profile_asks_nothing():
    profile = PROFILE | {"expirationTime": (NOON - timedelta(days=1)).isoformat()}
    client = Client(aws_answer(), profile=profile)

    with pytest.raises(ProfileError, match="expired"):
        client.credential(ORDERS)
    assert client.transport.requests == []


def test_what_a_gateway_says_is_cut_and_cannot_move_the_cursor():
    with pytest.raises(Refused) as raised:
        Client(error(400, "\x1b[2Jno\n" + "x" * 5000)).credential(ORDERS)

    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 600


@each_case("body", [b"<html>", b"[]", b"null", b"\xff"])
def test_an_answer_that_is_not_json_is_no_answer(body):
    answer = aws_answer()
    broken = type(answer)(status=200, body=body)

    with pytest.raises(Unavailable, match="endpoint"):
        Client(broken).credential(ORDERS)


def test_nothing_that_is_shown_has_a_secret():
    client = Client(aws_answer())
    client.credential(ORDERS)
    shown = repr((client.profile, client.transport.requests, aws_answer()))

    assert not any(secret in shown for secret in SECRETS)


def test_files_are_asked_for_in_the_format_that_is_simplest_where_it_tells_all():
    client = Client(_files("a"))
    listing = client.files(ORDERS, at={"version": 3}, refresh={"includeRefreshToken": True})

    assert [file.id for file in listing.files] == ["a"]
    (request,) = client.transport.requests
    assert (request.method, client.transport.paths) == ("POST", [f"{TABLE}/query"])
    assert json.loads(request.body or b"") == {"version": 3, "includeRefreshToken": True, "maxFiles": 10_000}
    capabilities = dict(part.split("=") for part in request.headers["delta-sharing-capabilities"].split(";"))
    assert capabilities["responseformat"] == "parquet,delta"
    assert capabilities["includeendstreamaction"] == "true"


def test_pages_are_asked_for_until_there_is_no_next_one():
    client = Client(_files("a", nextPageToken="2"), _files("b", nextPageToken="3"), _files("c"))
    listing = client.files(ORDERS, at={}, refresh={"refreshToken": "again"})

    assert [file.id for file in listing.files] == ["a", "b", "c"]
    bodies = [json.loads(request.body or b"") for request in client.transport.requests]
    assert [body.get("pageToken") for body in bodies] == [None, "2", "3"]
    assert ["refreshToken" in body for body in bodies] == [True, False, False]


@pytest.mark.parametrize("tokens", [["2", "2"], ["2", "3", "2"]])
def test_pages_that_lead_round_in_a_circle_are_refused(tokens):
    client = Client(*(_files("a", nextPageToken=token) for token in tokens), ASKED_ON)

    with pytest.raises(Refused, match="read already"):
        client.files(ORDERS, at={}, refresh={})
    assert len(client.transport.requests) == len(tokens)


@pytest.mark.parametrize("tokens", [["2", "2"], ["2", "3", "2"]])
def test_a_list_that_leads_round_in_a_circle_is_refused(tokens):
    client = Client(*(ok({"items": [], "nextPageToken": token}) for token in tokens), ASKED_ON)

    with pytest.raises(Refused, match="read already"):
        list(client.tables())
    assert len(client.transport.requests) == len(tokens)


def test_a_table_is_asked_for_in_the_delta_format_page_by_page():
    client = Client(_delta_files("a", nextPageToken="2"), _delta_files("b"))
    found = client.delta_lines(ORDERS, at={"version": 3})

    files = [json.loads(line)["file"]["deltaSingleAction"]["add"] for line in found[2:]]
    assert [file["path"] for file in files] == [
        "https://store.example/a?sp=r",
        "https://store.example/b?sp=r",
    ]
    bodies = [json.loads(request.body or b"") for request in client.transport.requests]
    assert bodies == [
        {"version": 3, "maxFiles": 10_000},
        {"version": 3, "pageToken": "2", "maxFiles": 10_000},
    ]
    for request in client.transport.requests:
        asked = dict(part.split("=") for part in request.headers["delta-sharing-capabilities"].split(";"))
        assert asked["responseformat"] == "delta"


def test_pages_in_the_delta_format_do_not_lead_round_in_a_circle_either():
    again = _delta_files("a", nextPageToken="2")

    with pytest.raises(Refused, match="read already"):
        Client(again, again, ASKED_ON).delta_lines(ORDERS, at={})


def test_files_in_the_delta_format_are_in_the_clear_for_who_talks_to_the_gateway_so():
    answer = _delta_files("a", scheme="http")
    plain = Client(answer, profile=PROFILE | {"endpoint": "http://gateway.example"})

    assert len(plain.delta_lines(ORDERS, at={})) == 3
    with pytest.raises(Refused, match="not https"):
        Client(answer).delta_lines(ORDERS, at={})


def test_files_in_the_clear_are_for_who_talks_to_the_gateway_so():
    answer = _files("a", scheme="http")
    plain = Client(answer, profile=PROFILE | {"endpoint": "HTTP://gateway.example"})

    assert plain.files(ORDERS, at={}, refresh={}).urls == {"a": "http://store.example/a"}
    with pytest.raises(Refused, match="not https"):
        Client(answer).files(ORDERS, at={}, refresh={})


def test_bytes_of_a_store_are_asked_for_without_the_token():
    client = Client(Response(status=206, body=b"rows"))

    assert client.fetch("https://store.example/a?sig=x", 3, 6).body == b"rows"
    (request,) = client.transport.requests
    assert dict(request.headers) == {"Range": "bytes=3-6"}


def test_a_store_is_asked_again_when_it_is_busy_or_away():
    client = Client(error(503), unreachable(), Response(status=206, body=b"rows"))

    assert client.fetch("https://store.example/a", 0, 3).status == 206
    assert client.slept == [0.5, 1.0]


def test_a_refusal_of_a_store_is_its_answer():
    client = Client(Response(status=403))

    assert client.fetch("https://store.example/a", 0, 3).status == 403
    assert client.slept == []


def _files(*ids, scheme="https", **end):
    answer = lines(
        [
            {"protocol": {}},
            {"metaData": {"schemaString": "{}"}},
            *({"file": {"url": f"{scheme}://store.example/{id_}", "id": id_, "size": 1}} for id_ in ids),
            {"endStreamAction": end},
        ]
    )
    return Response(status=200, headers={"delta-table-version": "3"}, body=answer.body)


def _delta_files(*ids, scheme="https", **end):
    paths = [f"{scheme}://store.example/{id_}?sp=r" for id_ in ids]
    answer = lines(
        [
            {"protocol": {"deltaProtocol": {}}},
            {"metaData": {"deltaMetadata": {}}},
            *({"file": {"deltaSingleAction": {"add": {"path": path}}}} for path in paths),
            {"endStreamAction": end},
        ]
    )
    headers = {"delta-table-version": "3", "delta-sharing-capabilities": "responseformat=delta"}
    return Response(status=200, headers=headers, body=answer.body)
