from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.adapters.catalog_yaml import YamlCatalog, build_index
from gateway.config.schema import Config
from gateway.domain.audit import AuditKind
from gateway.domain.grant import Audience
from gateway.domain.key import Key, Keys
from gateway.errors import (
    GatewayError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from gateway.ports import CatalogStore
from gateway.rpc.grant import GrantVerifier
from gateway.services.catalog.grant_signer import GrantSigner
from gateway.services.catalog.servicer import CatalogServicer
from gateway.v1 import catalog_pb2 as pb
from tests.cases import each_case
from tests.fakes.audit import FakeAuditLog
from tests.fakes.catalog_store import FakeCatalogStore, RecordingCatalogStore
from tests.fakes.views import fake_views
from tests.unit.services.catalog.calls import NOON, FakeClock, FakeContext

KEY = Ed25519PrivateKey.generate()
PAGE_KEYS = Keys(current=Key(id="p1", secret=b"1" * 32))


def sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def tables(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "location": f"s3://bucket/{name}"} for name in names]


CONTENT: dict[str, Any] = {
    "shares": [
        {
            "name": "Sales",
            "id": "sales-id",
            "displayName": "All sales",
            "comment": "By day",
            "properties": {"owner": "us"},
            "schemas": [
                {"name": "EU", "tables": tables("c", "A", "b")},
                {"name": "asia", "tables": tables("t")},
                {"name": "empty"},
            ],
        },
        {"name": "secret", "schemas": [{"name": "EU", "tables": tables("A")}]},
        {"name": "open", "schemas": [{"name": "main", "tables": tables("t")}]},
    ],
    "recipients": [
        {
            "name": "acme",
            "shares": ["sales", "open"],
            "tokens": [{"hash": f"sha256:{sha256('acme').hex()}"}],
        },
        {"name": "gone", "disabled": True, "tokens": [{"hash": f"sha256:{sha256('gone').hex()}"}]},
    ],
    "principals": [
        {"name": "edge", "certificate": "spiffe://edge", "permissions": ["edge"]},
        {
            "name": "lineage",
            "certificate": "spiffe://lineage",
            "permissions": ["actForRecipients"],
            "shares": ["open"],
        },
    ],
}
ACME = pb.Caller(token_sha256=sha256("acme"))
LOCAL = FakeContext()
BY_EDGE = FakeContext("ipv4:10.0.0.1:4000", ["spiffe://edge"])
BY_LINEAGE = FakeContext("ipv4:10.0.0.2:4000", ["spiffe://lineage"], {"x-request-id": "r-7"})
PLAINTEXT = FakeContext("unix:/run/sluice.sock")


@dataclass
class Bench:
    """A servicer with all that it stands on."""

    # Any: a context of our own making is not of grpc's type.
    servicer: Any
    catalog: YamlCatalog
    store: RecordingCatalogStore
    audit: FakeAuditLog
    clock: FakeClock


def make_bench(content: dict[str, Any], page_keys: Keys = PAGE_KEYS) -> Bench:
    clock, audit = FakeClock(), FakeAuditLog()
    catalog = YamlCatalog(build_index(Config.model_validate(content)))
    store = RecordingCatalogStore(catalog)
    servicer = CatalogServicer(
        store=store,
        signer=GrantSigner("k1", KEY, clock),
        page_keys=page_keys,
        views=fake_views(clock),
        audit=audit,
        clock=clock,
    )
    return Bench(servicer, catalog, store, audit, clock)


@pytest.fixture
def bench() -> Bench:
    return make_bench(CONTENT)


@pytest.fixture
def servicer(bench: Bench) -> Any:
    return bench.servicer


def resolve(
    share: str = "Sales",
    schema: str = "EU",
    table: str = "A",
    audiences: tuple[pb.Audience.ValueType, ...] = (pb.AUDIENCE_SNAPSHOT,),
    caller: pb.Caller = ACME,
) -> pb.ResolveRequest:
    return pb.ResolveRequest(caller=caller, share=share, schema=schema, table=table, audiences=audiences)


def verify(token: str, audience: Audience, clock: FakeClock):
    return GrantVerifier({"k1": KEY.public_key()}, audience, clock).verify(token)


async def test_resolve_answers_the_table_and_a_grant_for_each_audience_in_order(bench):
    wanted = (pb.AUDIENCE_VENDING, pb.AUDIENCE_SNAPSHOT, pb.AUDIENCE_PRESIGN)
    answer = await bench.servicer.Resolve(resolve("sALES", "eu", "a", wanted), LOCAL)
    assert answer.principal == "acme"
    assert (answer.table.share, answer.table.schema, answer.table.name) == ("Sales", "EU", "A")
    assert (answer.table.share_id, answer.table.location) == ("sales-id", "s3://bucket/A")
    assert list(answer.table.access_modes) == [pb.ACCESS_MODE_URL]
    audiences = (Audience.VENDING, Audience.SNAPSHOT, Audience.PRESIGN)
    for token, audience in zip(answer.grants, audiences, strict=True):
        grant = verify(token, audience, bench.clock)
        assert (grant.principal, grant.actor, str(grant.table)) == ("acme", "", "Sales.EU.A")
        assert grant.generation == bench.catalog.generation
        assert grant.table_id == answer.table.id
    assert answer.expires_at_ms == int((NOON + timedelta(seconds=60)).timestamp()) * 1000


async def test_resolve_tells_when_the_recipients_credentials_were_last_revoked():
    content = deepcopy(CONTENT)
    (acme,) = [entry for entry in content["recipients"] if entry["name"] == "acme"]
    acme["revokedAt"] = "2030-01-01T11:00:00.250Z"
    bench = make_bench(content)

    answer = await bench.servicer.Resolve(resolve(audiences=(pb.AUDIENCE_VENDING,)), LOCAL)

    assert answer.revoked_at_ms == int(NOON.timestamp() - 3600) * 1000 + 250
    grant = verify(answer.grants[0], Audience.VENDING, bench.clock)
    assert grant.revoked_at == NOON - timedelta(hours=1) + timedelta(milliseconds=250)


async def test_resolve_hands_out_the_same_grants_for_twenty_seconds(bench):
    first = await bench.servicer.Resolve(resolve(), LOCAL)
    bench.clock.now += timedelta(seconds=20)
    assert await bench.servicer.Resolve(resolve(), LOCAL) == first
    bench.clock.now += timedelta(seconds=1)
    later = await bench.servicer.Resolve(resolve(), LOCAL)
    assert later.grants != first.grants
    assert later.expires_at_ms == first.expires_at_ms + 21_000


async def test_resolve_reports_the_expiry_of_the_grant_that_expires_first(bench):
    first = await bench.servicer.Resolve(resolve(), LOCAL)
    bench.clock.now += timedelta(seconds=10)
    both = await bench.servicer.Resolve(resolve(audiences=(pb.AUDIENCE_PRESIGN, pb.AUDIENCE_SNAPSHOT)), LOCAL)
    assert both.expires_at_ms == first.expires_at_ms


async def test_a_reload_holds_from_the_next_resolve_on(bench):
    first = await bench.servicer.Resolve(resolve(), LOCAL)
    moved = {**CONTENT, "shares": [*CONTENT["shares"], {"name": "new"}]}
    bench.catalog.replace(build_index(Config.model_validate(moved)))
    second = await bench.servicer.Resolve(resolve(), LOCAL)
    assert first.grants != second.grants
    assert verify(second.grants[0], Audience.SNAPSHOT, bench.clock).generation == bench.catalog.generation
    bench.catalog.replace(build_index(Config.model_validate({**CONTENT, "shares": CONTENT["shares"][1:]})))
    with pytest.raises(NotFound):
        await bench.servicer.Resolve(resolve(), LOCAL)


@pytest.mark.parametrize("audiences", [(), (pb.AUDIENCE_UNSPECIFIED,), (pb.AUDIENCE_SNAPSHOT, 9)])
async def test_resolve_for_no_service_or_an_unknown_one_is_refused(servicer, audiences):
    with pytest.raises(InvalidArgument):
        await servicer.Resolve(resolve(audiences=audiences), LOCAL)


async def test_who_is_not_known_is_refused_before_anything_else(servicer):
    with pytest.raises(Unauthenticated):
        await servicer.Resolve(resolve(audiences=(), caller=pb.Caller(token_sha256=sha256(""))), LOCAL)
    with pytest.raises(Unauthenticated):
        await servicer.ListShares(pb.ListSharesRequest(page_token="nonsense"), LOCAL)
    with pytest.raises(PermissionDenied):
        await servicer.ListShares(
            pb.ListSharesRequest(caller=pb.Caller(token_sha256=sha256("gone")), page_token="nonsense"), LOCAL
        )


async def test_list_shares_answers_what_is_granted_with_all_fields(servicer):
    answer = await servicer.ListShares(pb.ListSharesRequest(caller=ACME), LOCAL)
    assert [share.name for share in answer.items] == ["open", "Sales"]
    assert answer.items[1] == pb.Share(
        name="Sales", id="sales-id", display_name="All sales", comment="By day", properties={"owner": "us"}
    )
    assert (answer.next_page_token, answer.principal) == ("", "acme")


async def test_get_share_answers_the_share_in_any_case(servicer):
    answer = await servicer.GetShare(pb.GetShareRequest(caller=ACME, share="SALES"), LOCAL)
    assert (answer.share.name, answer.share.id, answer.principal) == ("Sales", "sales-id", "acme")


async def test_list_schemas_answers_the_schemas_with_their_share(servicer):
    answer = await servicer.ListSchemas(pb.ListSchemasRequest(caller=ACME, share="sales"), LOCAL)
    assert [(schema.share, schema.name) for schema in answer.items] == [
        ("Sales", "asia"),
        ("Sales", "empty"),
        ("Sales", "EU"),
    ]
    assert (answer.next_page_token, answer.principal) == ("", "acme")


async def test_list_tables_answers_the_tables_of_the_schema(servicer):
    answer = await servicer.ListTables(pb.ListTablesRequest(caller=ACME, share="sales", schema="eu"), LOCAL)
    assert [table.name for table in answer.items] == ["A", "b", "c"]
    assert {(table.share, table.schema, table.share_id) for table in answer.items} == {
        ("Sales", "EU", "sales-id")
    }
    assert (answer.next_page_token, answer.principal) == ("", "acme")


async def test_an_empty_schema_has_no_tables_and_is_no_error(servicer):
    answer = await servicer.ListTables(
        pb.ListTablesRequest(caller=ACME, share="sales", schema="EMPTY"), LOCAL
    )
    assert (list(answer.items), answer.next_page_token) == ([], "")


async def test_list_all_tables_answers_the_tables_by_schema_and_name(servicer):
    answer = await servicer.ListAllTables(pb.ListAllTablesRequest(caller=ACME, share="sales"), LOCAL)
    assert [(table.schema, table.name) for table in answer.items] == [
        ("asia", "t"),
        ("EU", "A"),
        ("EU", "b"),
        ("EU", "c"),
    ]
    assert (answer.next_page_token, answer.principal) == ("", "acme")


@dataclass(frozen=True)
class Listing:
    """A list: how it is asked for, and the names of what it holds."""

    method: str
    request: Callable[..., Any]
    names: list[str]

    async def page(self, bench: Bench, **wishes: Any) -> tuple[list[str], str]:
        answer = await getattr(bench.servicer, self.method)(self.request(caller=ACME, **wishes), LOCAL)
        return [item.name for item in answer.items], answer.next_page_token


def list_schemas(**wishes):
    return pb.ListSchemasRequest(share="sales", **wishes)


def list_tables(**wishes):
    return pb.ListTablesRequest(share="sales", schema="eu", **wishes)


def list_all_tables(**wishes):
    return pb.ListAllTablesRequest(share="sales", **wishes)


LISTINGS = [
    Listing("ListShares", pb.ListSharesRequest, ["open", "Sales"]),
    Listing("ListSchemas", list_schemas, ["asia", "empty", "EU"]),
    Listing("ListTables", list_tables, ["A", "b", "c"]),
    Listing("ListAllTables", list_all_tables, ["t", "A", "b", "c"]),
]
every_listing = pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.method)


@every_listing
@pytest.mark.parametrize("size", [1, 2, 3, 4])
async def test_following_the_tokens_shows_everything_once_and_ends_without_one(bench, listing, size):
    names, token = await listing.page(bench, max_results=size)
    while token:
        more, token = await listing.page(bench, max_results=size, page_token=token)
        assert more
        names += more
    assert names == listing.names


@every_listing
async def test_max_results_0_shows_nothing_and_where_to_go_on(bench, listing):
    names, token = await listing.page(bench, max_results=0)
    assert names == []
    assert await listing.page(bench, page_token=token) == (listing.names, "")


@every_listing
async def test_a_full_last_page_has_no_token(bench, listing):
    assert await listing.page(bench, max_results=len(listing.names)) == (listing.names, "")


@every_listing
async def test_a_token_survives_a_reload_that_removed_its_item_and_a_restart(bench, listing):
    _, token = await listing.page(bench, max_results=1)
    first = listing.names[0]
    shares = [
        {
            **share,
            "schemas": [
                {**schema, "tables": [table for table in schema.get("tables", []) if table["name"] != first]}
                for schema in share["schemas"]
                if schema["name"] != first
            ],
        }
        for share in CONTENT["shares"]
        if share["name"] != first
    ]
    changed = {**CONTENT, "shares": shares}
    rotated = Keys(current=Key(id="p2", secret=b"2" * 32), previous=PAGE_KEYS.current)
    assert await listing.page(make_bench(changed, rotated), page_token=token) == (listing.names[1:], "")


@every_listing
async def test_a_token_of_another_list_or_of_nobody_is_refused(bench, listing):
    _, own = await listing.page(bench, max_results=1)
    others = [await other.page(bench, max_results=1) for other in LISTINGS if other is not listing]
    for token in (*(token for _, token in others), "nonsense", own[:-1], own + "A"):
        with pytest.raises(InvalidArgument, match="page token"):
            await listing.page(bench, page_token=token)


async def test_a_token_of_one_share_is_refused_for_another_even_if_that_does_not_exist(servicer):
    answer = await servicer.ListSchemas(
        pb.ListSchemasRequest(caller=ACME, share="sales", max_results=1), LOCAL
    )
    for share in ("open", "secret", "missing"):
        with pytest.raises(InvalidArgument, match="page token"):
            await servicer.ListSchemas(
                pb.ListSchemasRequest(caller=ACME, share=share, page_token=answer.next_page_token), LOCAL
            )


async def test_a_page_has_500_items_unless_more_are_asked_for_and_never_more_than_1000():
    shares = [{"name": f"s{number:04}"} for number in range(1500)]
    recipients = [{**CONTENT["recipients"][0], "shares": "*"}]
    bench = make_bench({"shares": shares, "recipients": recipients})
    for wanted, size in ((None, 500), (900, 900), (1200, 1000)):
        answer = await bench.servicer.ListShares(pb.ListSharesRequest(caller=ACME, max_results=wanted), LOCAL)
        assert len(answer.items) == size
        assert answer.next_page_token


MISSING: dict[str, Callable[[str], Any]] = {
    "Resolve": resolve,
    "GetShare": lambda share: pb.GetShareRequest(caller=ACME, share=share),
    "ListSchemas": lambda share: pb.ListSchemasRequest(caller=ACME, share=share),
    "ListTables": lambda share: pb.ListTablesRequest(caller=ACME, share=share, schema="EU"),
    "ListAllTables": lambda share: pb.ListAllTablesRequest(caller=ACME, share=share),
}
ILLEGAL = ["", " ", "a/b", "a\0b", "x" * 256, "..", "*", "a\nb"]


async def answer_of(bench: Bench, method: str, request: Any) -> tuple[str, str, list[str]]:
    """Return the message and code of the error, and the calls on the store that it took."""
    bench.store.calls.clear()
    with pytest.raises(GatewayError) as caught:
        await getattr(bench.servicer, method)(request, LOCAL)
    assert isinstance(caught.value, NotFound)
    return caught.value.message, caught.value.error_code, list(bench.store.calls)


def fake_bench() -> Bench:
    bench = make_bench(CONTENT)
    index = build_index(Config.model_validate(CONTENT))
    every = list(index.shares.values())
    fake: CatalogStore = FakeCatalogStore(
        shares=[each.share for each in every],
        schemas=[schema for each in every for schema in each.schemas.items],
        tables=[table for each in every for table in each.all_tables.items],
        tokens={sha256("acme"): (index.principals.recipients["acme"], None)},
    )
    store = RecordingCatalogStore(fake)
    servicer = CatalogServicer(
        store=store,
        signer=GrantSigner("k1", KEY, bench.clock),
        page_keys=PAGE_KEYS,
        views=fake_views(bench.clock),
        audit=bench.audit,
        clock=bench.clock,
    )
    return replace(bench, servicer=servicer, store=store)


# Who is asking, for lists of which content, and what is there.
NUMBER_OF_CALLS = {"Resolve": 2, "GetShare": 2, "ListSchemas": 3, "ListTables": 3, "ListAllTables": 3}


@each_case("make", [lambda: make_bench(CONTENT), fake_bench], ids=["yaml", "fake"])
@each_case("method", MISSING)
async def test_what_is_not_granted_has_the_answer_and_takes_the_calls_of_what_is_not_there(make, method):
    bench = make()
    message, code, calls = await answer_of(bench, method, MISSING[method]("secret"))
    missing = await answer_of(bench, method, MISSING[method]("absent"))
    assert (message.replace("secret", "absent"), code, calls) == missing
    assert "does not exist, please contact your share provider" in message
    assert code == "RESOURCE_DOES_NOT_EXIST"
    assert len(calls) == NUMBER_OF_CALLS[method]


@each_case("share", ILLEGAL)
@each_case("method", MISSING)
async def test_a_name_that_cannot_exist_is_answered_like_one_that_does_not(bench, method, share):
    message, code, calls = await answer_of(bench, method, MISSING[method](share))
    assert "does not exist, please contact your share provider" in message
    assert (code, len(calls)) == ("RESOURCE_DOES_NOT_EXIST", NUMBER_OF_CALLS[method])


@each_case(
    ("method", "request_", "named"),
    [
        ("Resolve", resolve("Nope", "EU", "A"), "table 'Nope.EU.A'"),
        ("Resolve", resolve("SALES", "Nope", "A"), "table 'SALES.Nope.A'"),
        ("Resolve", resolve("sales", "eu", "Nope"), "table 'sales.eu.Nope'"),
        ("GetShare", pb.GetShareRequest(caller=ACME, share="Nope"), "share 'Nope'"),
        ("ListSchemas", pb.ListSchemasRequest(caller=ACME, share="Nope"), "share 'Nope'"),
        (
            "ListTables",
            pb.ListTablesRequest(caller=ACME, share="Sales", schema="Nope"),
            "schema 'Sales.Nope'",
        ),
        ("ListTables", pb.ListTablesRequest(caller=ACME, share="Nope", schema="EU"), "schema 'Nope.EU'"),
        ("ListAllTables", pb.ListAllTablesRequest(caller=ACME, share="Nope"), "share 'Nope'"),
    ],
)
async def test_what_does_not_exist_is_named_as_it_was_written(servicer, method, request_, named):
    with pytest.raises(NotFound) as caught:
        await getattr(servicer, method)(request_, LOCAL)
    assert caught.value.message == f"{named} does not exist, please contact your share provider"


async def test_a_name_without_end_is_answered_within_limits(servicer):
    with pytest.raises(NotFound) as caught:
        await servicer.Resolve(resolve("x" * 10**6, "y" * 10**6, "z" * 10**6), LOCAL)
    assert len(caught.value.message) < 1200


CALLS: dict[str, Callable[..., Any]] = {
    "Resolve": resolve,
    "ListShares": pb.ListSharesRequest,
    "GetShare": lambda caller: pb.GetShareRequest(caller=caller, share="open"),
    "ListSchemas": lambda caller: pb.ListSchemasRequest(caller=caller, share="open"),
    "ListTables": lambda caller: pb.ListTablesRequest(caller=caller, share="open", schema="main"),
    "ListAllTables": lambda caller: pb.ListAllTablesRequest(caller=caller, share="open"),
}
every_call = pytest.mark.parametrize("method", CALLS)


def request_of(method: str, caller: pb.Caller) -> Any:
    if method == "Resolve":
        return resolve("open", "main", "t", (pb.AUDIENCE_PRESIGN,), caller)
    return CALLS[method](caller=caller)


@every_call
@pytest.mark.parametrize("context", [LOCAL, BY_EDGE], ids=["local", "edge"])
async def test_what_an_edge_asks_for_recipients_is_not_audited_here(bench, method, context):
    await getattr(bench.servicer, method)(request_of(method, ACME), context)
    with pytest.raises(Unauthenticated):
        await getattr(bench.servicer, method)(
            request_of(method, pb.Caller(token_sha256=sha256("?"))), context
        )
    assert bench.audit == FakeAuditLog()


@every_call
async def test_a_platform_service_s_own_calls_are_audited(bench, method):
    answer = await getattr(bench.servicer, method)(request_of(method, pb.Caller()), BY_LINEAGE)
    assert answer.principal == "lineage"
    (event,) = bench.audit.appended + bench.audit.noted
    assert (event.operation, event.outcome) == (f"catalog.{method}", "ok")
    assert (event.principal, event.actor) == ("lineage", "")
    assert (event.request_id, event.remote) == ("r-7", "ipv4:10.0.0.2:4000")
    assert bool(bench.audit.appended) == (method == "Resolve")


@every_call
async def test_what_a_service_asks_for_a_recipient_is_audited_with_its_actor(bench, method):
    caller = pb.Caller(recipient="acme")
    answer = await getattr(bench.servicer, method)(request_of(method, caller), BY_LINEAGE)
    assert answer.principal == "acme"
    (event,) = bench.audit.appended + bench.audit.noted
    assert (event.principal, event.actor) == ("acme", "lineage")


async def test_a_grant_for_an_actor_names_it(bench):
    request = resolve(caller=pb.Caller(recipient="acme"))
    answer = await bench.servicer.Resolve(request, BY_LINEAGE)
    grant = verify(answer.grants[0], Audience.SNAPSHOT, bench.clock)
    assert (grant.principal, grant.actor) == ("acme", "lineage")


async def test_a_service_sees_what_it_is_granted_itself_and_no_more(servicer):
    answer = await servicer.ListShares(pb.ListSharesRequest(), BY_LINEAGE)
    assert [share.name for share in answer.items] == ["open"]
    with pytest.raises(NotFound):
        await servicer.Resolve(resolve(caller=pb.Caller()), BY_LINEAGE)


@every_call
async def test_a_token_on_a_plaintext_connection_is_audited_here(bench, method):
    await getattr(bench.servicer, method)(request_of(method, ACME), PLAINTEXT)
    assert len(bench.audit.appended + bench.audit.noted) == 1


@pytest.mark.parametrize(
    ("request_", "context", "principal", "actor"),
    [
        (resolve("secret", caller=pb.Caller()), BY_LINEAGE, "lineage", ""),
        (resolve("secret", caller=pb.Caller(recipient="acme")), BY_LINEAGE, "acme", "lineage"),
        (resolve(caller=pb.Caller(recipient="nobody")), BY_LINEAGE, "", "lineage"),
        (resolve(caller=ACME), BY_LINEAGE, "", "lineage"),
        (resolve(caller=pb.Caller()), FakeContext("ipv4:10.0.0.3:1", ["spiffe://stranger"]), "", ""),
        (resolve(caller=pb.Caller(token_sha256=b"?")), PLAINTEXT, "", ""),
    ],
    ids=["ungranted", "ungranted to the recipient", "no recipient", "no edge", "stranger", "unknown token"],
)
async def test_what_is_refused_to_a_service_is_audited_as_a_denial(
    bench, request_, context, principal, actor
):
    with pytest.raises(GatewayError):
        await bench.servicer.Resolve(request_, context)
    (event,) = bench.audit.noted
    assert event.kind is AuditKind.DENIAL
    assert (event.principal, event.actor) == (principal, actor)
    assert bench.audit.appended == []


async def test_a_grant_whose_event_cannot_be_kept_is_not_handed_out(bench):
    bench.audit.broken = True
    with pytest.raises(Unavailable):
        await bench.servicer.Resolve(request_of("Resolve", pb.Caller()), BY_LINEAGE)
    await bench.servicer.Resolve(resolve(), LOCAL)


async def test_a_list_is_answered_again_from_memory_until_the_content_changes(bench):
    request = pb.ListSharesRequest(caller=ACME)
    first = await bench.servicer.ListShares(request, LOCAL)
    again = await bench.servicer.ListShares(request, LOCAL)
    assert again is first

    bench.catalog.replace(
        build_index(
            Config.model_validate(
                CONTENT | {"shares": [], "recipients": [dict(r, shares=[]) for r in CONTENT["recipients"]]}
            )
        )
    )

    assert not (await bench.servicer.ListShares(request, LOCAL)).items


@pytest.mark.parametrize("context", [LOCAL, BY_EDGE], ids=["in this process", "in another"])
async def test_a_recipient_whom_an_edge_sends_away_is_in_the_edges_own_log(bench, context):
    with pytest.raises(Unauthenticated):
        await bench.servicer.Resolve(resolve(caller=pb.Caller(token_sha256=sha256("nobody"))), context)
    assert bench.audit == FakeAuditLog()


async def test_an_edge_that_tries_to_act_for_a_recipient_is_refused_and_audited_here(bench):
    with pytest.raises(PermissionDenied):
        await bench.servicer.Resolve(resolve(caller=pb.Caller(recipient="acme")), BY_EDGE)
    (event,) = bench.audit.noted
    assert (event.kind, event.actor, event.principal) == (AuditKind.DENIAL, "edge", "")
