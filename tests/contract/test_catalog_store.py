"""What every catalog store does, whatever it keeps its content in."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.adapters.catalog_yaml import YamlCatalog, build_index
from gateway.config.schema import Config
from gateway.domain.location import parse_location
from gateway.domain.name import TableName, fold
from gateway.domain.principal import ALL_SHARES, Permission, Principal, PrincipalKind
from gateway.domain.table import AccessMode, Schema, Share, Table
from gateway.ports import CatalogStore
from tests.cases import each_case
from tests.fakes.catalog_store import FakeCatalogStore, RecordingCatalogStore

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PEM = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n"
NEXT_PEM = PEM.replace("MCow", "MCox")

# Share, schema, tables: neither in order nor in one case.
CONTENT = [
    ("Beta", "main", ["t1"]),
    ("alpha", "Zulu", ["b", "A", "c"]),
    ("alpha", "echo", ["y", "X"]),
    ("alpha", "empty", []),
    ("gamma.v2", "main", ["t"]),
    ("secret", "main", ["t1"]),
]
SHARES = sorted({share for share, _, _ in CONTENT}, key=fold)
GRANTED = ["ALPHA", "beta", "gone"]


def sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def yaml_catalog() -> CatalogStore:
    shares = [
        {
            "name": share,
            "id": f"id of {share}",
            "displayName": f"The {share}",
            "comment": "a comment",
            "properties": {"owner": "us"},
            "schemas": [
                {
                    "name": schema,
                    "tables": [
                        {
                            "name": table,
                            "id": f"id of {table} in {schema}",
                            "location": f"s3a://bucket/{share}/{schema}/{table}",
                            "auxiliaryLocations": ["s3://other/place"],
                            "historyShared": True,
                            "accessModes": ["url", "dir"],
                        }
                        for table in tables
                    ],
                }
                for name, schema, tables in CONTENT
                if name == share
            ],
        }
        for share in dict.fromkeys(share for share, _, _ in CONTENT)
    ]
    recipients = [
        {
            "name": "acme",
            "shares": GRANTED,
            "tokens": [
                {"hash": f"sha256:{sha256('old').hex()}", "expires": (NOON + timedelta(hours=1)).isoformat()},
                {"hash": f"sha256:{sha256('new').hex()}"},
            ],
            "identities": [{"issuer": "https://id.example.com", "subject": "acme-job"}],
        },
        {"name": "auditor", "shares": "*", "tokens": [{"hash": f"sha256:{sha256('all').hex()}"}]},
        {"name": "nobody", "tokens": [{"hash": f"sha256:{sha256('none').hex()}"}]},
        {
            "name": "gone",
            "disabled": True,
            "shares": "*",
            "tokens": [{"hash": f"sha256:{sha256('off').hex()}"}],
        },
    ]
    principals = [
        {
            "name": "edge",
            "certificate": "spiffe://sluice/edge",
            "permissions": ["edge", "actForRecipients"],
            "shares": ["alpha"],
        },
        {"name": "lineage", "publicKeys": [PEM, NEXT_PEM], "shares": ["alpha"]},
        {"name": "both", "certificate": "spiffe://sluice/both", "publicKeys": [PEM], "shares": ["alpha"]},
    ]
    return YamlCatalog(
        build_index(
            Config.model_validate({"shares": shares, "recipients": recipients, "principals": principals})
        )
    )


def fake_catalog() -> CatalogStore:
    shares = {
        share: Share(
            name=share,
            id=f"id of {share}",
            display_name=f"The {share}",
            comment="a comment",
            properties={"owner": "us"},
        )
        for share, _, _ in CONTENT
    }
    tables = [
        Table(
            name=TableName(share, schema, table),
            id=f"id of {table} in {schema}",
            share_id=shares[share].id,
            location=parse_location(f"s3a://bucket/{share}/{schema}/{table}"),
            auxiliary_locations=(parse_location("s3://other/place"),),
            access_modes=(AccessMode.URL, AccessMode.DIR),
            history_shared=True,
        )
        for share, schema, names in CONTENT
        for table in names
    ]
    everything = frozenset({ALL_SHARES})
    acme = recipient("acme", frozenset(fold(share) for share in GRANTED))
    auditor, nobody = recipient("auditor", everything), recipient("nobody", frozenset())
    gone = recipient("gone", everything, disabled=True)
    edge = service("edge", frozenset({Permission.EDGE, Permission.ACT_FOR_RECIPIENTS}))
    both = service("both", frozenset())
    return FakeCatalogStore(
        shares=list(shares.values()),
        schemas=[Schema(name=schema, share=share) for share, schema, _ in CONTENT],
        tables=tables,
        recipients=[acme, auditor, nobody, gone],
        tokens={
            sha256("old"): (acme, NOON + timedelta(hours=1)),
            sha256("new"): (acme, None),
            sha256("all"): (auditor, None),
            sha256("none"): (nobody, None),
            sha256("off"): (gone, None),
        },
        identities={("https://id.example.com", "acme-job"): acme},
        certificates={"spiffe://sluice/edge": edge, "spiffe://sluice/both": both},
        service_keys={"lineage": (service("lineage", frozenset()), (PEM, NEXT_PEM)), "both": (both, (PEM,))},
    )


def recording_catalog() -> CatalogStore:
    return RecordingCatalogStore(yaml_catalog())


def recipient(name: str, shares: frozenset[str], *, disabled: bool = False) -> Principal:
    return Principal(name=name, kind=PrincipalKind.RECIPIENT, shares=shares, disabled=disabled)


def service(name: str, permissions: frozenset[Permission]) -> Principal:
    return Principal(
        name=name, kind=PrincipalKind.SERVICE, shares=frozenset({"alpha"}), permissions=permissions
    )


@pytest.fixture(params=[yaml_catalog, fake_catalog, recording_catalog], ids=lambda make: make.__name__)
def store(request) -> CatalogStore:
    made: CatalogStore = request.param()
    return made


@pytest.fixture
async def acme(store) -> Principal:
    return await known(store, "acme")


@pytest.fixture
async def auditor(store) -> Principal:
    return await known(store, "auditor")


@pytest.fixture
async def nobody(store) -> Principal:
    return await known(store, "nobody")


async def known(store: CatalogStore, name: str) -> Principal:
    principal = await store.find_recipient(name)
    assert principal is not None
    return principal


@each_case(("token", "name"), [("old", "acme"), ("new", "acme"), ("all", "auditor"), ("off", "gone")])
async def test_each_token_of_a_recipient_finds_it(store, token, name):
    principal = await store.find_by_token(sha256(token), NOON)
    assert principal == await known(store, name)
    assert principal.name == name
    assert principal.kind is PrincipalKind.RECIPIENT


@each_case("digest", [sha256("wrong"), sha256(""), b"", b"old", bytes(32), sha256("new")[:31]])
async def test_an_unknown_token_finds_nobody(store, digest):
    assert await store.find_by_token(digest, NOON) is None


async def test_a_token_is_unknown_from_its_expiry_on(store):
    expiry = NOON + timedelta(hours=1)
    assert await store.find_by_token(sha256("old"), expiry - timedelta(microseconds=1)) is not None
    assert await store.find_by_token(sha256("old"), expiry) is None
    assert await store.find_by_token(sha256("new"), expiry) is not None


async def test_a_disabled_recipient_is_found_as_such(store):
    assert (await known(store, "gone")).disabled
    assert not (await known(store, "acme")).disabled


async def test_an_identity_finds_its_recipient_by_issuer_and_subject_together(store, acme):
    assert await store.find_by_identity("https://id.example.com", "acme-job") == acme
    assert await store.find_by_identity("https://id.example.com", "other") is None
    assert await store.find_by_identity("https://evil.example.com", "acme-job") is None
    assert await store.find_by_identity("", "") is None


async def test_an_unknown_recipient_is_none(store):
    assert await store.find_recipient("unknown") is None
    assert await store.find_recipient("") is None


async def test_a_platform_service_is_no_recipient(store):
    assert await store.find_recipient("edge") is None


async def test_a_certificate_finds_its_service_by_any_of_its_names(store):
    found = await store.find_service_by_certificate(["edge.example.com", "spiffe://sluice/edge"])
    assert found is not None
    assert (found.certificate, found.public_keys) == ("spiffe://sluice/edge", ())
    edge = found.principal
    assert (edge.name, edge.kind) == ("edge", PrincipalKind.SERVICE)
    assert edge.permissions == {Permission.EDGE, Permission.ACT_FOR_RECIPIENTS}
    assert edge.shares == {"alpha"}


@each_case("names", [[], [""], ["edge"], ["spiffe://sluice/edge/more"], ["acme"]])
async def test_a_certificate_of_nobody_finds_nobody(store, names):
    assert await store.find_service_by_certificate(names) is None


async def test_a_service_with_keys_is_found_with_them(store):
    found = await store.find_service_with_keys("lineage")
    lineage = found.principal
    assert (lineage.name, lineage.kind, lineage.permissions) == (
        "lineage",
        PrincipalKind.SERVICE,
        frozenset(),
    )
    assert (found.certificate, found.public_keys) == ("", (PEM, NEXT_PEM))


async def test_a_service_with_a_certificate_and_a_key_is_found_with_both_either_way(store):
    by_certificate = await store.find_service_by_certificate(["spiffe://sluice/both"])
    assert by_certificate == await store.find_service_with_keys("both")
    assert by_certificate.certificate == "spiffe://sluice/both"
    assert by_certificate.public_keys == (PEM,)


@each_case("name", ["edge", "acme", "unknown", ""])
async def test_who_has_no_key_is_not_found_by_one(store, name):
    assert await store.find_service_with_keys(name) is None


async def test_a_share_is_found_with_all_its_fields_whatever_the_case(store, acme):
    for spelling in ("alpha", "ALPHA", "aLpHa"):
        assert await store.find_share(acme, spelling) == Share(
            name="alpha",
            id="id of alpha",
            display_name="The alpha",
            comment="a comment",
            properties={"owner": "us"},
        )


async def test_a_table_is_found_with_all_its_fields_whatever_the_case(store, acme):
    table = await store.find_table(acme, TableName("ALPHA", "zulu", "a"))
    assert table == Table(
        name=TableName("alpha", "Zulu", "A"),
        id="id of A in Zulu",
        share_id="id of alpha",
        location=parse_location("s3a://bucket/alpha/Zulu/A"),
        auxiliary_locations=(parse_location("s3://other/place"),),
        access_modes=(AccessMode.URL, AccessMode.DIR),
        history_shared=True,
    )
    assert table.location.text == "s3a://bucket/alpha/Zulu/A"


@each_case("share", ["secret", "missing", "gone", "", "alph", "alpha.Zulu", "*"])
async def test_a_share_that_is_not_granted_or_not_there_is_none(store, acme, share):
    assert await store.find_share(acme, share) is None
    assert await store.find_table(acme, TableName(share, "main", "t1")) is None
    assert await store.list_schemas(acme, share, after="", limit=10) is None
    assert await store.list_tables(acme, share, "main", after="", limit=10) is None
    assert await store.list_all_tables(acme, share, after=("", ""), limit=10) is None


@each_case(
    "name",
    [
        TableName("alpha", "missing", "a"),
        TableName("alpha", "Zulu", "missing"),
        TableName("alpha", "echo", "a"),
        TableName("beta", "Zulu", "a"),
        TableName("alpha", "", ""),
    ],
)
async def test_a_table_that_is_not_there_is_none(store, acme, name):
    assert await store.find_table(acme, name) is None


async def test_a_schema_that_is_not_there_is_none_and_an_empty_one_is_empty(store, acme):
    assert await store.list_tables(acme, "alpha", "missing", after="", limit=10) is None
    assert list(await store.list_tables(acme, "alpha", "EMPTY", after="", limit=10)) == []


@dataclass
class Listing:
    """A list, how to get a page of it, and what it holds."""

    page: Callable[[CatalogStore, Principal, tuple[str, ...], int], Awaitable[Sequence[Any] | None]]
    key: Callable[[Any], tuple[str, ...]]
    expected: list[tuple[str, ...]]
    first: tuple[str, ...] = ("",)


def share_names(store, principal, after, limit):
    return store.list_shares(principal, after=after[0], limit=limit)


def schema_names(store, principal, after, limit):
    return store.list_schemas(principal, "Alpha", after=after[0], limit=limit)


def table_names(store, principal, after, limit):
    return store.list_tables(principal, "Alpha", "ZULU", after=after[0], limit=limit)


def all_table_names(store, principal, after, limit):
    return store.list_all_tables(principal, "Alpha", after=(after[0], after[1]), limit=limit)


LISTINGS = {
    "shares": Listing(share_names, lambda item: (item.name,), [("alpha",), ("Beta",)]),
    "schemas": Listing(schema_names, lambda item: (item.name,), [("echo",), ("empty",), ("Zulu",)]),
    "tables": Listing(table_names, lambda item: (item.name.table,), [("A",), ("b",), ("c",)]),
    "all tables": Listing(
        all_table_names,
        lambda item: (item.name.schema, item.name.table),
        [("echo", "X"), ("echo", "y"), ("Zulu", "A"), ("Zulu", "b"), ("Zulu", "c")],
        ("", ""),
    ),
}
every_listing = pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)


@every_listing
async def test_a_list_holds_what_is_granted_in_the_order_of_folded_names(store, acme, listing):
    found = await listing.page(store, acme, listing.first, 100)
    assert [listing.key(item) for item in found] == listing.expected


@every_listing
@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_pages_that_start_after_the_last_key_give_the_whole_list_once(store, acme, listing, size):
    names, after = [], listing.first
    while found := await listing.page(store, acme, after, size):
        assert len(found) <= size
        names += [listing.key(item) for item in found]
        after = tuple(fold(name) for name in names[-1])
    assert names == listing.expected


@every_listing
async def test_a_page_after_a_key_that_is_gone_goes_on_with_the_next(store, acme, listing):
    gone = (*(fold(name) for name in listing.expected[0][:-1]), fold(listing.expected[0][-1]) + "!")
    found = await listing.page(store, acme, gone, 100)
    assert [listing.key(item) for item in found] == listing.expected[1:]


@every_listing
async def test_a_page_after_the_end_is_empty(store, acme, listing):
    assert list(await listing.page(store, acme, ("\U0010ffff",) * len(listing.first), 100)) == []


@every_listing
async def test_a_page_of_nothing_is_empty(store, acme, listing):
    assert list(await listing.page(store, acme, listing.first, 0)) == []


async def test_the_star_lists_every_share_and_no_grant_lists_none(store, auditor, nobody):
    assert [share.name for share in await store.list_shares(auditor, after="", limit=100)] == SHARES
    assert list(await store.list_shares(nobody, after="", limit=100)) == []


async def test_a_principal_the_store_has_not_seen_is_taken_at_its_grants(store):
    stranger = recipient("stranger", frozenset({"secret", "beta"}))
    found = await store.list_shares(stranger, after="", limit=100)
    assert [share.name for share in found] == ["Beta", "secret"]
