"""What every vendor's credentials open, and what the store itself refuses to whoever holds them.

A vendor joins by a harness: its storage on a store that enforces what it is told, and a client of that store
which shares no code with the vendor.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from gateway.domain.credential import Credential
from gateway.domain.location import Location
from gateway.domain.probe import Action, Verdict
from gateway.domain.scope import Scope
from gateway.errors import Unsupported
from gateway.ports import CredentialIssuer, Probe, Storage

LIFE = timedelta(hours=1)
# How far the store's clock and ours may be apart.
SKEW = timedelta(minutes=5)


class Denied(Exception):
    """The store says that this credential may not; not that it does not believe the credential."""


class Missing(Exception):
    """The store says that there is nothing of that name, to somebody who may know."""


class Harness(Protocol):
    storage: Storage

    def location(self, directory: str) -> Location:
        """Return the location of a directory below the storage's prefix."""

    def elsewhere(self, directory: str) -> Location:
        """Return a location in another bucket or container, which the gateway's own identity reads, too."""

    async def put(self, at: Location, path: str, content: bytes) -> None:
        """Store an object as the table's owner would."""

    async def read(self, credential: Credential, at: Location, path: str) -> bytes:
        """Read as a recipient would; raise ``Denied`` or ``Missing``."""

    async def listing(self, credential: Credential, at: Location, prefix: str) -> Sequence[str]:
        """Return the keys with the prefix, which begins at the root of the bucket or container."""

    async def write(self, credential: Credential, at: Location, path: str, content: bytes) -> None: ...

    async def delete(self, credential: Credential, at: Location, path: str) -> None: ...


# Names beside a table whose letters begin with its own, or that a careless pattern would take for it.
SIBLINGS = ("orders2", "orders-secret", "orders.bak", "orders_", "order", "orders orders")
# Names that mean more than themselves to a policy language, an expression, a URL or a text that holds them.
AWKWARD = (
    "a*",
    "*",
    "f?o",
    "${aws:username}",
    "${*}",
    "$",
    "x') || ('1'=='1",
    'say "hi"',
    "it's",
    "50%",
    "%41bc",
    "a b",
    "a+b",
    "naïve-日本",
    "#1",
    "a,b;c&d=e",
    "[x]{y}",
    "~tilde!",
)
# Those of them that a policy language without escapes cannot name.
PATTERNS = {name for name in AWKWARD if not set("*?$").isdisjoint(name)}


class IssuerContract:
    """Tests over a fixture ``harness``."""

    async def test_credential_reads_and_lists_its_directory(self, harness):
        table, credential = await shared(harness, "orders")

        assert await harness.read(credential, table, "part-0") == b"rows"
        assert await harness.read(credential, table, "_delta_log/0.json") == b"log"
        listed = await harness.listing(credential, table, f"{table.path}/")
        assert sorted(listed) == [f"{table.path}/_delta_log/0.json", f"{table.path}/part-0"]
        assert await harness.listing(credential, table, f"{table.path}/_delta_log/") == [
            f"{table.path}/_delta_log/0.json"
        ]

    async def test_missing_file_of_the_directory_is_missing_and_not_denied(self, harness):
        table, credential = await shared(harness, "orders")

        with pytest.raises(Missing):
            await harness.read(credential, table, "_delta_log/1.json")

    async def test_sibling_stays_closed(self, harness):
        base = f"base-{secrets.token_hex(4)}"
        _table, credential = await shared(harness, "orders", base)
        siblings = {name: harness.location(f"{base}/{name}") for name in SIBLINGS}
        for other in siblings.values():
            await harness.put(other, "part-0", b"secret")

        closed = [name for name, other in siblings.items() if await is_closed(harness, credential, other)]

        assert closed == list(SIBLINGS)

    async def test_sibling_that_differs_by_case_stays_closed(self, harness):
        base = f"base-{secrets.token_hex(4)}"
        _, credential = await shared(harness, "orders", base)
        other = harness.location(f"{base}/Orders")
        await harness.put(other, "part-0", b"secret")

        with pytest.raises(Denied):
            await harness.read(credential, other, "part-0")

    async def test_object_beside_the_directory_stays_closed(self, harness):
        base = f"base-{secrets.token_hex(4)}"
        _table, credential = await shared(harness, "orders", base)
        above = harness.location(base)
        await harness.put(above, "orders.parquet", b"secret")
        await harness.put(above, "README", b"secret")

        for name in ("orders.parquet", "README"):
            with pytest.raises(Denied):
                await harness.read(credential, above, name)

    async def test_listing_from_above_shows_nothing(self, harness):
        base = f"base-{secrets.token_hex(4)}"
        table, credential = await shared(harness, "orders", base)
        await harness.put(harness.location(f"{base}/orders2"), "part-0", b"secret")

        for prefix in ("", f"{table.path.rpartition('/')[0]}/", table.path, f"{table.path}2/"):
            with pytest.raises(Denied):
                await harness.listing(credential, table, prefix)

    async def test_parent_and_unrelated_directories_stay_closed(self, harness):
        _table, credential = await shared(harness, "deep/er/orders")
        other, _ = await shared(harness, "customers")

        with pytest.raises(Denied):
            await harness.read(credential, other, "part-0")
        with pytest.raises(Denied):
            await harness.listing(credential, other, f"{other.path}/")

    async def test_another_bucket_stays_closed_below_the_same_path(self, harness):
        table, credential = await shared(harness, "orders")
        other = harness.elsewhere(_below(harness, table))
        assert (other.path, other.authority != table.authority) == (table.path, True)
        await harness.put(other, "part-0", b"secret")

        with pytest.raises(Denied):
            await harness.read(credential, other, "part-0")
        with pytest.raises(Denied):
            await harness.listing(credential, other, f"{other.path}/")
        with pytest.raises(Denied):
            await harness.listing(credential, other, "")
        # Nothing but the credential keeps it closed, where a storage's issuer signs for other buckets at all.
        with suppress(Unsupported):
            own = await issue(harness, other)
            assert await harness.read(own, other, "part-0") == b"secret"

    async def test_nothing_can_be_written_or_deleted(self, harness):
        table, credential = await shared(harness, "orders")

        for path in ("part-0", "new", "_delta_log/1.json"):
            with pytest.raises(Denied):
                await harness.write(credential, table, path, b"forged")
            with pytest.raises(Denied):
                await harness.delete(credential, table, path)
        assert await harness.read(credential, table, "part-0") == b"rows"

    async def test_credential_of_a_directory_below_does_not_open_the_one_above(self, harness):
        table, _ = await shared(harness, "orders")
        below = harness.location(f"{_below(harness, table)}/_delta_log")
        credential = await issue(harness, below)

        assert await harness.read(credential, below, "0.json") == b"log"
        with pytest.raises(Denied):
            await harness.read(credential, table, "part-0")

    async def test_awkward_name_is_itself_or_refused(self, harness):
        """An awkward name opens itself and none of its victims; a pattern may be refused instead."""
        base = f"base-{secrets.token_hex(4)}"
        victims = [harness.location(f"{base}/{victim}") for victim in ("aa", "foo", "victim", "1", "Abc")]
        for victim in victims:
            await harness.put(victim, "part-0", b"secret")
        opened: list[str] = []
        refused: list[str] = []
        for name in AWKWARD:
            table = harness.location(f"{base}/{name}")
            try:
                credential = await issue(harness, table)
            except Unsupported:
                refused.append(name)
                continue
            await harness.put(table, "part-0", name.encode())
            assert await harness.read(credential, table, "part-0") == name.encode(), name
            keys = await harness.listing(credential, table, f"{table.path}/")
            assert keys == [f"{table.path}/part-0"], name
            opened += [
                f"{name} opens {victim.path}"
                for victim in victims
                if not await is_closed(harness, credential, victim)
            ]

        assert opened == []
        assert set(refused) <= PATTERNS

    async def test_recipients_share_a_credential_only_where_it_names_nobody(self, harness):
        table, first = await shared(harness, "orders")

        second = await issue(harness, table, recipient="globex")

        if _issuer(harness).names_recipients:
            assert first.secret != second.secret
        assert await harness.read(second, table, "part-0") == b"rows"

    async def test_any_recipient_can_be_named(self, harness):
        table, _ = await shared(harness, "orders")

        for recipient in ("a b", "ä/ö", "x" * 200, "acme\n", "a:b,c=d", "*", "😀"):
            credential = await issue(harness, table, recipient=recipient)

            assert await harness.read(credential, table, "part-0") == b"rows", recipient

    async def test_expiration_is_ahead_and_no_later_than_asked(self, harness):
        _table, credential = await shared(harness, "orders")

        left = credential.expires_at - datetime.now(UTC)

        assert timedelta(0) < left <= LIFE + SKEW

    async def test_credential_shows_no_secret(self, harness):
        _, credential = await shared(harness, "orders")

        text = f"{credential!r} {credential}"

        for name in credential.secret.__slots__:
            value = getattr(credential.secret, name)
            if name not in {"access_key_id", "region", "endpoint"}:
                assert value not in text
                assert credential.id not in value

    async def test_probe_sees_what_a_client_sees(self, harness):
        base = f"base-{secrets.token_hex(4)}"
        table, credential = await shared(harness, "orders", base)
        other = harness.location(f"{base}/orders2")
        await harness.put(other, "part-0", b"secret")
        probe = _probe(harness)

        async def verdict(action: Action, at: Location, path: str) -> Verdict:
            return (await probe.attempt(credential, action, at, path)).verdict

        assert await verdict(Action.READ, table, "part-0") is Verdict.ALLOWED
        assert await verdict(Action.READ, table, "none") is Verdict.MISSING
        assert await verdict(Action.LIST, table, "") is Verdict.ALLOWED
        assert await verdict(Action.READ, other, "part-0") is Verdict.DENIED
        assert await verdict(Action.LIST, other, "") is Verdict.DENIED
        assert await verdict(Action.LIST, harness.location(base), "") is Verdict.DENIED
        assert await verdict(Action.WRITE, table, "new") is Verdict.DENIED
        assert await verdict(Action.DELETE, table, "none") is Verdict.DENIED


class S3Harness(Harness, Protocol):
    async def call(self, credential: Credential, method: str, **parameters: object) -> Mapping[str, Any]:
        """Call S3 by boto3's name of the method; raise ``Denied`` or ``Missing``."""

    async def assume_role(self, credential: Credential) -> Credential | None:
        """Ask for a session without a policy, as the gateway asks for its own; None where that is refused."""


# What a recipient never needs of an object, and what would tell him more than its content.
REFUSED_ON_OBJECTS: Mapping[str, Mapping[str, object]] = {
    "get_object_tagging": {},
    "get_object_acl": {},
    "put_object_acl": {"ACL": "public-read"},
    "put_object_tagging": {"Tagging": {"TagSet": [{"Key": "a", "Value": "b"}]}},
    "create_multipart_upload": {},
}


class S3IssuerContract(IssuerContract):
    """The contract of stores that speak S3, which can be asked for more."""

    async def test_nothing_is_copied_from_a_neighbour_or_within(self, harness):
        base = f"base-{secrets.token_hex(4)}"
        table, credential = await shared(harness, "orders", base)
        other = harness.location(f"{base}/orders2")
        await harness.put(other, "part-0", b"secret")

        for source in (other, table):
            from_there = {"Bucket": source.authority, "Key": f"{source.path}/part-0"}
            with pytest.raises(Denied):
                await harness.call(
                    credential,
                    "copy_object",
                    Bucket=table.authority,
                    Key=f"{table.path}/copied",
                    CopySource=from_there,
                )
        with pytest.raises(Missing):
            await harness.read(credential, table, "copied")

    @pytest.mark.parametrize("method", ["list_objects", "list_object_versions", "list_multipart_uploads"])
    async def test_listing_of_another_kind_shows_nothing_from_above(self, harness, method):
        base = f"base-{secrets.token_hex(4)}"
        table, credential = await shared(harness, "orders", base)
        above = table.path.rpartition("/")[0]

        for prefix in ("", above, f"{above}/", table.path, f"{table.path}2/"):
            with pytest.raises(Denied):
                await harness.call(credential, method, Bucket=table.authority, Prefix=prefix)
        with pytest.raises(Denied):
            await harness.call(credential, method, Bucket=table.authority)

    async def test_nothing_is_deleted_in_bulk(self, harness):
        table, credential = await shared(harness, "orders")
        keys = [{"Key": f"{table.path}/{path}"} for path in ("part-0", "_delta_log/0.json")]

        with pytest.raises(Denied):
            await harness.call(credential, "delete_objects", Bucket=table.authority, Delete={"Objects": keys})
        assert await harness.read(credential, table, "part-0") == b"rows"
        assert await harness.read(credential, table, "_delta_log/0.json") == b"log"

    async def test_object_is_read_and_nothing_else_is_done_to_it(self, harness):
        table, credential = await shared(harness, "orders")
        place = {"Bucket": table.authority, "Key": f"{table.path}/part-0"}

        denied = [
            method
            for method, parameters in REFUSED_ON_OBJECTS.items()
            if await is_denied(harness.call(credential, method, **place, **parameters))
        ]

        assert denied == list(REFUSED_ON_OBJECTS)


class StsIssuerContract(S3IssuerContract):
    """The contract of stores with a token service, which the recipient of a session can call as well."""

    async def test_session_has_no_wider_session(self, harness):
        base = f"base-{secrets.token_hex(4)}"
        _table, credential = await shared(harness, "orders", base)
        other = harness.location(f"{base}/orders2")
        await harness.put(other, "part-0", b"secret")

        wider = await harness.assume_role(credential)

        if wider is not None:
            with pytest.raises(Denied):
                await harness.read(wider, other, "part-0")
            with pytest.raises(Denied):
                await harness.listing(wider, other, f"{other.path}/")


async def shared(harness: Harness, name: str, base: str = "") -> tuple[Location, Credential]:
    """Return a table of two files, in a directory that no other test uses, and a credential for it."""
    table = harness.location(f"{base or f'base-{secrets.token_hex(4)}'}/{name}")
    await harness.put(table, "part-0", b"rows")
    await harness.put(table, "_delta_log/0.json", b"log")
    return table, await issue(harness, table)


async def is_closed(harness: Harness, credential: Credential, other: Location) -> bool:
    """True if a credential neither reads nor lists a directory that has a file."""
    reading = await is_denied(harness.read(credential, other, "part-0"))
    return await is_denied(harness.listing(credential, other, f"{other.path}/")) and reading


async def is_denied(call: Awaitable[object]) -> bool:
    try:
        await call
    except Denied:
        return True
    return False


async def issue(harness: Harness, table: Location, recipient: str = "acme") -> Credential:
    issuer = _issuer(harness)
    named = recipient if issuer.names_recipients else ""
    return await issuer.issue(Scope(location=table, recipient=named, life=LIFE))


def _below(harness: Harness, table: Location) -> str:
    return harness.storage.prefix.below(table)


def _issuer(harness: Harness) -> CredentialIssuer:
    assert harness.storage.issuer is not None
    return harness.storage.issuer


def _probe(harness: Harness) -> Probe:
    assert harness.storage.probe is not None
    return harness.storage.probe
