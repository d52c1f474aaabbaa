from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.audit import AuditKind
from gateway.edge.signing import moment
from gateway.errors import Unauthenticated, Unavailable, Unsupported
from gateway.v1.catalog_pb2 import AUDIENCE_VENDING
from gateway.v1.vending_pb2 import AzureUserDelegationSas, GcpOauthToken, IssueResponse
from tests.cases import each_case
from tests.fakes.http_connection import Reply
from tests.fakes.services import FAR_MS, FakeRecipient, FakeTable
from tests.unit.edge.conftest import AUTH, BASE, Edge, make_world, start_edge

TABLE = "/shares/Sales/schemas/eu/tables"
DIRS = f"{TABLE}/dirs/temporary-table-credentials"
ORDERS = f"{TABLE}/orders/temporary-table-credentials"
TRIPS = f"{TABLE}/trips/temporary-table-credentials"
AWS = f"{TABLE}/dirs/aws-credentials"
TRIPS_AWS = f"{TABLE}/trips/aws-credentials"
KEYS = {
    "accessKeyId": "ASIAFAKE",
    "secretAccessKey": "secret-of-fake",
    "sessionToken": "session-of-fake",
}
ALWAYS = timedelta(0)
NEVER = timedelta(days=1)


def world(**trips: Any) -> Any:
    table = FakeTable(
        share="Sales",
        schema="eu",
        name="trips",
        access_modes=("url", "dir"),
        auxiliary_locations=("s3://other/trips", "s3a://Third/t%20x"),
    )
    made = make_world()
    made.tables = [*made.tables, replace(table, **trips)]
    return made


def error(reply: Reply) -> tuple[int, str]:
    return reply.status, json.loads(reply.body)["errorCode"]


async def test_the_answer_is_the_credential_for_the_tables_own_location(edge: Edge) -> None:
    reply = await edge.post(DIRS)
    assert reply.status == 200
    assert json.loads(reply.body) == {
        "credentials": {
            "location": "s3://bucket/dirs",
            "awsTempCredentials": {**KEYS, "region": "eu-west-1", "endpoint": "https://s3.test"},
            "expirationTime": FAR_MS,
        }
    }


async def test_a_credential_is_counted_for_who_was_given_it(edge: Edge) -> None:
    await edge.post(DIRS)
    assert edge.metrics.credentials == ["ann"]


async def test_the_headers_of_an_answer(edge: Edge) -> None:
    reply = await edge.post(DIRS)
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert reply.headers["Cache-Control"] == "no-store"
    assert "delta-sharing-capabilities" not in reply.headers
    assert "Delta-Table-Version" not in reply.headers


async def test_the_grant_is_for_vending_alone(edge: Edge) -> None:
    await edge.post(DIRS)
    (request,) = edge.services.catalog.requests
    assert list(request.audiences) == [AUDIENCE_VENDING]
    assert edge.services.snapshot.requests == []


async def test_an_answer_is_one_line_of_ascii() -> None:
    made = world(auxiliary_locations=("s3://other/caf\u00e9",))
    async with start_edge(world=made) as edge:
        reply = await edge.post(TRIPS, json.dumps({"location": "s3://other/caf\u00e9"}).encode())
    assert reply.body.isascii()
    assert b"\n" not in reply.body
    assert json.loads(reply.body)["credentials"]["location"] == "s3://other/caf\u00e9"


@pytest.mark.parametrize(
    ("credential", "block"),
    [
        (
            IssueResponse(azure=AzureUserDelegationSas(sas_token="sv=1&sig=x")),
            {"azureUserDelegationSas": {"sasToken": "sv=1&sig=x"}},
        ),
        (IssueResponse(gcp=GcpOauthToken(oauth_token="ya29.x")), {"gcpOauthToken": {"oauthToken": "ya29.x"}}),
    ],
    ids=["azure", "gcp"],
)
async def test_each_kind_of_credential_has_its_block(
    edge: Edge, credential: IssueResponse, block: dict[str, Any]
) -> None:
    edge.services.vending.credential = credential
    reply = await edge.post(DIRS)
    assert json.loads(reply.body)["credentials"] == {
        "location": "s3://bucket/dirs",
        **block,
        "expirationTime": 0,
    }


async def test_an_answer_of_vending_without_a_credential_is_never_passed_on(edge: Edge) -> None:
    edge.services.vending.credential = IssueResponse(expires_at_ms=FAR_MS)
    for reply in (await edge.post(DIRS), await edge.get(AWS)):
        assert error(reply) == (500, "INTERNAL_ERROR")
    assert edge.audit.appended == []


async def test_a_credential_for_another_location_is_never_passed_on(edge: Edge) -> None:
    edge.services.vending.credential.location = "s3://bucket"
    reply = await edge.post(DIRS)
    assert error(reply) == (500, "INTERNAL_ERROR")
    assert edge.audit.appended == []


@pytest.mark.parametrize(("region", "endpoint"), [("", ""), ("eu", ""), ("", "https://e")])
async def test_region_and_endpoint_are_left_out_where_they_are_not_known(
    edge: Edge, region: str, endpoint: str
) -> None:
    aws = edge.services.vending.credential.aws
    aws.region, aws.endpoint = region, endpoint
    known = {name: value for name, value in {"region": region, "endpoint": endpoint}.items() if value}
    reply = await edge.post(DIRS)
    assert json.loads(reply.body)["credentials"]["awsTempCredentials"] == KEYS | known


async def test_region_and_endpoint_are_left_out_where_the_operator_says_so() -> None:
    async with start_edge(region_and_endpoint=False) as edge:
        reply = await edge.post(DIRS)
    assert json.loads(reply.body)["credentials"]["awsTempCredentials"] == KEYS


async def test_keys_are_repeated_for_a_table_that_says_so() -> None:
    async with start_edge(world=world(r2_credentials=True)) as edge:
        credentials = json.loads((await edge.post(TRIPS)).body)["credentials"]
        edge.services.vending.credential = IssueResponse(gcp=GcpOauthToken(oauth_token="y"))
        other = json.loads((await edge.post(TRIPS)).body)["credentials"]
    assert credentials["r2Credentials"] == KEYS
    assert credentials["awsTempCredentials"].items() >= KEYS.items()
    assert "r2Credentials" not in other


@each_case(
    ("body", "headers", "number"),
    [
        (None, {}, 0),
        (b"", {"Content-Type": "application/json"}, 0),
        (b" \n", {}, 0),
        (b"{}", {}, 0),
        (b"{}", {"Content-Type": "application/json; charset=utf-8"}, 0),
        (b'{"location":null,"auxiliaryLocation":null,"unknown":1}', {}, 0),
        (b'{"location":"s3://bucket/trips"}', {}, 0),
        (b'{"location":"s3://bucket/trips/"}', {}, 0),
        (b'{"location":"s3://other/trips"}', {}, 1),
        (b'{"auxiliaryLocation":"s3://other/trips"}', {}, 1),
        (b'{"auxiliaryLocation":"s3://other/trips/","location":"s3://other/trips/"}', {}, 1),
        (b'{"auxiliaryLocation":"s3://bucket/trips","location":null}', {}, 0),
        (b'{"location":"s3a://Third/t%20x"}', {}, 2),
    ],
)
async def test_a_location_is_found_as_it_is_advertised(
    body: bytes | None, headers: dict[str, str], number: int
) -> None:
    async with start_edge(world=world()) as edge:
        reply = await edge.server.post(BASE + TRIPS, AUTH | headers, body or b"")
        listed = json.loads((await edge.get(f"{TABLE}?maxResults=50")).body)["items"]
    (table,) = [item for item in listed if item["name"] == "trips"]
    assert reply.status == 200
    assert edge.services.vending.requests[0].location == number
    advertised = [table["location"], *table["auxiliaryLocations"]]
    assert json.loads(reply.body)["credentials"]["location"] == advertised[number]


FOREIGN = [
    "",
    "/",
    "s3://bucket",
    "s3://bucket/",
    "s3://bucket/trip",
    "s3://bucket/trips2",
    "s3://bucket/trips//",
    "s3://bucket//trips",
    "s3://bucket/trips/part=1",
    "s3://bucket/trips/_delta_log",
    "s3://bucket/trips/../salaries",
    "s3://bucket/trips/%2e%2e/salaries",
    "s3://bucket/trips/.",
    "s3://bucket/TRIPS",
    "s3://bucket/tr%69ps",
    "s3a://bucket/trips",
    "s3n://bucket/trips",
    "S3://bucket/trips",
    "s3://BUCKET/trips",
    " s3://bucket/trips",
    "s3://bucket/trips ",
    "s3://bucket/trips?x=1",
    "s3://bucket/trips#x",
    "s3://bucket/trips*",
    "bucket/trips",
    "s3://other",
    "s3://third/t%20x",
    "s3a://Third/t x",
    'x"}]}',
    "\u0000",
]


async def test_any_other_location_is_refused_before_anything_is_minted() -> None:
    wrong = {}
    async with start_edge(world=world()) as edge:
        for field, location in itertools.product(["location", "auxiliaryLocation"], FOREIGN):
            reply = await edge.post(TRIPS, json.dumps({field: location}).encode())
            body = json.loads(reply.body)
            message = body.get("message", "")
            if not (
                (reply.status, body.get("errorCode")) == (400, "INVALID_PARAMETER_VALUE")
                and "same as or under this table's configured storage" in message
                and "s3://bucket/trips, s3://other/trips, s3a://Third/t%20x" in message
                and edge.services.vending.requests == []
            ):
                wrong[field, location] = reply.status, reply.body
                edge.services.vending.requests.clear()
    assert wrong == {}


@each_case(
    ("query", "body", "headers", "answered"),
    [
        ("", b"null", {}, (400, "MALFORMED_REQUEST")),
        ("", b"[]", {}, (400, "MALFORMED_REQUEST")),
        ("", b"1", {}, (400, "MALFORMED_REQUEST")),
        ("", b'"s3://bucket/trips"', {}, (400, "MALFORMED_REQUEST")),
        ("", b"{", {}, (400, "MALFORMED_REQUEST")),
        ("", b"{}{}", {}, (400, "MALFORMED_REQUEST")),
        ("", b"\xff\xfe{}", {}, (400, "MALFORMED_REQUEST")),
        ("", "{}".encode("utf-16"), {}, (400, "MALFORMED_REQUEST")),
        ("", b'{"location":1}', {}, (400, "MALFORMED_REQUEST")),
        ("", b'{"location":["s3://bucket/trips"]}', {}, (400, "MALFORMED_REQUEST")),
        ("", b'{"location":{}}', {}, (400, "MALFORMED_REQUEST")),
        ("", b'{"location":"\\ud800"}', {}, (400, "MALFORMED_REQUEST")),
        ("", b'{"location":"a","location":"s3://bucket/trips"}', {}, (400, "MALFORMED_REQUEST")),
        (
            "",
            b'{"location":"s3://bucket/trips","auxiliaryLocation":"s3://other/trips"}',
            {},
            (400, "INVALID_PARAMETER_VALUE"),
        ),
        ("?location=s3://bucket/trips", b"", {}, (400, "INVALID_PARAMETER_VALUE")),
        ("?auxiliaryLocation=s3://other/trips", b"{}", {}, (400, "INVALID_PARAMETER_VALUE")),
        ("", b"{}", {"Content-Type": "text/plain"}, (415, "MALFORMED_REQUEST")),
        (
            "",
            b"location=x",
            {"Content-Type": "multipart/form-data"},
            (415, "MALFORMED_REQUEST"),
        ),
        ("", b"{}", {"Content-Type": "application/json; charset=utf-16"}, (415, "MALFORMED_REQUEST")),
        ("", b"{}", {"Content-Encoding": "gzip"}, (415, "MALFORMED_REQUEST")),
        ("", b" " * 2000, {}, (413, "MALFORMED_REQUEST")),
    ],
)
async def test_a_body_that_is_not_understood_is_refused_before_anything_is_minted(
    query: str, body: bytes, headers: dict[str, str], answered: tuple[int, str]
) -> None:
    async with start_edge(world=world(), body_limit=1000) as edge:
        reply = await edge.post(TRIPS + query, body, **headers)
    assert error(reply) == answered
    assert edge.services.vending.requests == []
    assert edge.audit.appended == []


async def test_a_body_in_pieces_is_read_whole() -> None:
    async with start_edge(world=world()) as edge:
        connection = edge.server.connect()
        head = f"POST {BASE}{TRIPS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-of-ann\r\n"
        connection.send(f'{head}Transfer-Encoding: chunked\r\n\r\n5\r\n{{"loc\r\n'.encode())
        connection.send(b'1c\r\nation":"s3://other/trips"  }\r\n0\r\n\r\n')
        reply = await connection.reply()
    assert json.loads(reply.body)["credentials"]["location"] == "s3://other/trips"


@each_case("body", [b"{}", b"{", b"[]", b'{"location":"s3://bucket/t"}', b'{"location":1}', b'{"a":1,"a":1}'])
async def test_what_is_not_granted_is_as_what_is_not_there_whatever_the_body(edge: Edge, body: bytes) -> None:
    replies = [
        await edge.post(f"/shares/{path}/temporary-table-credentials", body)
        for path in ("hidden/schemas/d/tables/t", "nowhere/schemas/d/tables/t")
    ]
    assert [error(reply) for reply in replies] == [(404, "RESOURCE_DOES_NOT_EXIST")] * 2
    assert replies[0].body.replace(b"hidden", b"nowhere") == replies[1].body
    assert edge.services.vending.requests == []


async def test_a_table_of_urls_has_no_credentials(edge: Edge) -> None:
    for reply in (
        await edge.post(ORDERS),
        await edge.post(ORDERS, b'{"location":"s3://bucket/orders"}'),
        await edge.get(f"{TABLE}/orders/aws-credentials"),
    ):
        assert error(reply) == (400, "UNSUPPORTED_OPERATION")
        assert "dir" in json.loads(reply.body)["message"]
    assert edge.services.vending.requests == []


async def test_capabilities_that_do_not_apply_are_ignored(edge: Edge) -> None:
    header = "responseformat=delta;readerfeatures=deletionvectors;includeEndStreamAction=true;asyncquery=true"
    reply = await edge.post(DIRS, delta_sharing_capabilities=header)
    assert reply.status == 200
    assert "delta-sharing-capabilities" not in reply.headers


async def test_a_grant_is_recorded_before_the_answer_without_its_secrets(edge: Edge) -> None:
    for operation, ask in (
        ("generateTemporaryTableCredentials", edge.post(DIRS)),
        ("getAwsCredentials", edge.get(AWS)),
    ):
        edge.audit.appended.clear()
        assert (await ask).status == 200
        (event,) = edge.audit.appended
        assert (event.kind, event.operation, event.outcome) == (AuditKind.GRANT, operation, "OK")
        assert (event.principal, event.share, event.schema, event.table) == ("ann", "Sales", "eu", "dirs")
        assert (event.mode, event.locations) == ("dir", ("s3://bucket/dirs",))
        assert (event.credential_id, event.expires_at) == ("ASIAFAKE", moment(FAR_MS))
        assert "of-fake" not in repr(event)


async def test_the_location_that_was_asked_for_is_the_one_that_is_recorded() -> None:
    async with start_edge(world=world()) as edge:
        await edge.post(TRIPS, b'{"location":"s3://other/trips/"}')
    assert edge.audit.appended[0].locations == ("s3://other/trips",)


async def test_an_audit_log_that_fails_refuses(edge: Edge) -> None:
    edge.audit.broken = True
    for reply in (await edge.post(DIRS), await edge.get(AWS)):
        assert error(reply) == (503, "TEMPORARILY_UNAVAILABLE")
        assert b"fake" not in reply.body


@pytest.mark.parametrize(
    ("failure", "answered"),
    [
        (Unavailable("the store does not answer"), (503, "TEMPORARILY_UNAVAILABLE")),
        (Unsupported("the store cannot"), (400, "UNSUPPORTED_OPERATION")),
        (Unauthenticated("the grant has expired"), (503, "TEMPORARILY_UNAVAILABLE")),
        (RuntimeError("secret-of-fake"), (500, "INTERNAL_ERROR")),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_failure_of_vending_is_answered_and_nothing_is_recorded_as_granted(
    edge: Edge, failure: Exception, answered: tuple[int, str]
) -> None:
    edge.services.vending.error = failure
    reply = await edge.post(DIRS)
    assert error(reply) == answered
    assert b"secret-of-fake" not in reply.body
    assert edge.audit.appended == []


async def test_a_store_that_asks_for_fewer_calls_is_passed_on_to_the_client(edge: Edge) -> None:
    edge.services.vending.error = Unavailable("throttled", retry_after=timedelta(seconds=7))
    reply = await edge.post(DIRS)
    assert reply.status == 503
    assert reply.headers["Retry-After"] == "7"


def revoke(edge: Edge) -> None:
    edge.services.catalog.world.recipients = [FakeRecipient(name="ann", token="token-of-ann", shares=())]


def forget(edge: Edge) -> None:
    edge.services.catalog.world.recipients = []


def hand_over(edge: Edge) -> None:
    token = FakeRecipient(name="eve", token="token-of-ann", shares=("Sales",))
    edge.services.catalog.world.recipients = [token]


def revoke_what_is_out(edge: Edge) -> None:
    ann = FakeRecipient(name="ann", token="token-of-ann", shares=("Sales",), revoked_at_ms=1)
    edge.services.catalog.world.recipients = [ann]


def change(**fields: Any) -> Any:
    def apply(edge: Edge) -> None:
        tables = edge.services.catalog.world.tables
        edge.services.catalog.world.tables = [
            replace(table, **fields) if table.name == "dirs" else table for table in tables
        ]

    return apply


@each_case(
    ("meanwhile", "status"),
    [
        (revoke, 404),
        (change(share="Other"), 404),
        (forget, 401),
        (hand_over, 503),
        (revoke_what_is_out, 503),
        (change(auxiliary_locations=("s3://new",)), 503),
        (change(access_modes=("url",)), 503),
        (change(access_modes=("url", "dir")), 503),
        (lambda edge: None, 200),
    ],
    ids=[
        *("revoked", "gone", "token gone", "token of another", "credentials revoked"),
        *("moved", "modes", "more modes", "unchanged"),
    ],
)
@each_case("path", [DIRS, AWS])
async def test_what_is_withdrawn_while_a_credential_is_made_is_not_handed_out(
    path: str, meanwhile: Any, status: int
) -> None:
    async with start_edge(grant_again_after=ALWAYS) as edge:
        edge.services.vending.meanwhile = lambda: meanwhile(edge)
        reply = await (edge.get(path) if path == AWS else edge.post(path))
        assert len(edge.services.catalog.requests) == 2
    assert reply.status == status
    assert (b"secret-of-fake" in reply.body) == (status == 200)
    assert len(edge.audit.appended) == (status == 200)


async def test_a_credential_that_was_at_hand_is_granted_once() -> None:
    async with start_edge(grant_again_after=NEVER) as edge:
        assert (await edge.post(DIRS)).status == 200
    assert len(edge.services.catalog.requests) == 1


async def test_aws_tools_get_what_they_expect(edge: Edge) -> None:
    edge.services.vending.credential.expires_at_ms = 1_790_000_000_999
    reply = await edge.get(AWS)
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert reply.headers["Cache-Control"] == "no-store"
    assert json.loads(reply.body) == {
        "AccessKeyId": "ASIAFAKE",
        "SecretAccessKey": "secret-of-fake",
        "Token": "session-of-fake",
        "Expiration": "2026-09-21T14:13:20Z",
    }


async def test_aws_tools_name_a_location_in_the_query() -> None:
    async with start_edge(world=world()) as edge:
        assert (await edge.get(f"{TRIPS_AWS}?location=s3%3A%2F%2Fother%2Ftrips")).status == 200
        assert edge.services.vending.requests[0].location == 1
        for query in ("location=", "location=s3://bucket", "location=a&location=a", "location=%ff"):
            reply = await edge.get(f"{TRIPS_AWS}?{query}")
            assert error(reply) == (400, "INVALID_PARAMETER_VALUE")
        assert len(edge.services.vending.requests) == 1


async def test_credentials_of_another_kind_are_nothing_for_aws_tools(edge: Edge) -> None:
    edge.services.vending.credential = IssueResponse(gcp=GcpOauthToken(oauth_token="ya29.x"))
    reply = await edge.get(AWS)
    assert error(reply) == (400, "UNSUPPORTED_OPERATION")
    assert edge.audit.appended == []


async def test_errors_for_aws_tools_have_the_code_where_they_look_for_it(edge: Edge) -> None:
    for path, headers, code in (
        (AWS, {}, "UNAUTHENTICATED"),
        (AWS.replace("dirs", "none"), AUTH, "RESOURCE_DOES_NOT_EXIST"),
        (AWS.replace("dirs", "orders"), AUTH, "UNSUPPORTED_OPERATION"),
    ):
        body = json.loads((await edge.server.get(BASE + path, headers)).body)
        assert set(body) == {"code", "errorCode", "message"}
        assert body["code"] == body["errorCode"] == code
