from __future__ import annotations

import hashlib
import json
from datetime import timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.domain.principal import Permission, Principal, PrincipalKind
from gateway.errors import SERVICE_REFUSED, NotFound, PermissionDenied, Unauthenticated
from gateway.rpc.peer import Peer
from gateway.services.catalog.callers import Asker, Callers, Visitor
from gateway.v1 import catalog_pb2 as pb
from tests.fakes.catalog_store import FakeCatalogStore, RecordingCatalogStore
from tests.unit.services.catalog.calls import NOON, FakeClock

KEY = Ed25519PrivateKey.generate()
PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
ONE_MESSAGE = "the bearer token is missing, unknown or expired"


def sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def service(name: str, *permissions: Permission, disabled: bool = False) -> Principal:
    return Principal(
        name=name,
        kind=PrincipalKind.SERVICE,
        shares=frozenset({"own"}),
        permissions=frozenset(permissions),
        disabled=disabled,
    )


ACME = Principal(name="acme", kind=PrincipalKind.RECIPIENT, shares=frozenset({"sales"}))
GONE = Principal(name="gone", kind=PrincipalKind.RECIPIENT, shares=frozenset({"sales"}), disabled=True)
PLAIN = service("plain")
EDGE = service("edge", Permission.EDGE)
ACTOR = service("actor", Permission.ACT_FOR_RECIPIENTS)
BOTH = service("both", Permission.EDGE, Permission.ACT_FOR_RECIPIENTS)
OFF = service("off", Permission.EDGE, Permission.ACT_FOR_RECIPIENTS, disabled=True)
SERVICES = [PLAIN, EDGE, ACTOR, BOTH, OFF]

LOCAL = Peer(local=True)
PLAINTEXT = Peer(local=False)
TOKEN = pb.Caller(token_sha256=sha256("good"))
IDENTITY = pb.Caller(identity=pb.VerifiedIdentity(issuer="https://id", subject="acme-job"))
RECIPIENT = pb.Caller(recipient="acme")
NOTHING = pb.Caller()


def by_certificate(principal: Principal) -> Peer:
    return Peer(local=False, certificate_names=("other.example.com", f"spiffe://{principal.name}"))


def by_jwt(principal: Principal) -> Peer:
    now = int(NOON.timestamp())
    claims = {"sub": f"{principal.name}-by-jwt", "aud": "gateway.v1.Catalog", "iat": now, "exp": now + 60}
    return Peer(local=False, bearer=jwt.PyJWS().encode(json.dumps(claims).encode(), KEY, algorithm="EdDSA"))


@pytest.fixture
def store() -> RecordingCatalogStore:
    return RecordingCatalogStore(
        FakeCatalogStore(
            recipients=[ACME, GONE],
            tokens={
                sha256("good"): (ACME, None),
                sha256("late"): (ACME, NOON),
                sha256("gone"): (GONE, None),
            },
            identities={("https://id", "acme-job"): ACME, ("https://id", "gone-job"): GONE},
            certificates={f"spiffe://{each.name}": each for each in SERVICES},
            # Known by one or the other, not by both together.
            service_keys={f"{each.name}-by-jwt": (each, (PEM,)) for each in SERVICES},
        )
    )


@pytest.fixture
def identify(store):
    callers = Callers(store, FakeClock())

    async def identify(peer: Peer, caller: pb.Caller) -> Asker:
        return await callers.identify(await callers.meet(peer), caller)

    return identify


each_way = pytest.mark.parametrize("known", [by_certificate, by_jwt], ids=["certificate", "JWT"])


@pytest.mark.parametrize("caller", [TOKEN, IDENTITY, RECIPIENT], ids=["token", "identity", "recipient"])
async def test_this_process_is_trusted_as_an_edge(identify, caller):
    assert await identify(LOCAL, caller) == Asker(principal=ACME, edge=True)


async def test_a_plaintext_peer_may_present_a_token(identify):
    assert await identify(PLAINTEXT, TOKEN) == Asker(principal=ACME, edge=False)


@pytest.mark.parametrize("caller", [IDENTITY, RECIPIENT, NOTHING], ids=["identity", "recipient", "nothing"])
async def test_a_plaintext_peer_may_present_nothing_else(identify, store, caller):
    with pytest.raises(Unauthenticated, match=ONE_MESSAGE):
        await identify(PLAINTEXT, caller)
    assert store.calls == []


async def test_this_process_does_not_ask_for_itself(identify):
    with pytest.raises(Unauthenticated, match=ONE_MESSAGE):
        await identify(LOCAL, NOTHING)


@each_way
async def test_a_service_that_presents_nothing_asks_for_itself(identify, known):
    for principal in (PLAIN, EDGE, ACTOR, BOTH):
        assert await identify(known(principal), NOTHING) == Asker(principal=principal, edge=False)


@each_way
@pytest.mark.parametrize("caller", [TOKEN, IDENTITY], ids=["token", "identity"])
async def test_a_service_that_is_an_edge_may_present_what_recipients_present(identify, known, caller):
    for principal in (EDGE, BOTH):
        assert await identify(known(principal), caller) == Asker(principal=ACME, edge=True)


@each_way
@pytest.mark.parametrize("caller", [TOKEN, IDENTITY], ids=["token", "identity"])
async def test_a_service_that_is_no_edge_may_not(identify, store, known, caller):
    for principal in (PLAIN, ACTOR):
        with pytest.raises(PermissionDenied, match="lacks the permission edge") as caught:
            await identify(known(principal), caller)
        assert caught.value.error_code == SERVICE_REFUSED
    assert not {"find_by_token", "find_by_identity"} & set(store.calls)


@each_way
async def test_a_service_that_may_act_for_recipients_is_their_actor(identify, known):
    for principal in (ACTOR, BOTH):
        assert await identify(known(principal), RECIPIENT) == Asker(
            principal=ACME, actor=principal.name, edge=False
        )


@each_way
@pytest.mark.parametrize("name", ["acme", "unknown"])
async def test_a_service_that_may_not_act_learns_nothing_of_recipients(identify, store, known, name):
    for principal in (PLAIN, EDGE):
        with pytest.raises(PermissionDenied, match="lacks the permission actForRecipients"):
            await identify(known(principal), pb.Caller(recipient=name))
    assert "find_recipient" not in store.calls


@each_way
@pytest.mark.parametrize("caller", [TOKEN, IDENTITY, RECIPIENT, NOTHING])
async def test_a_disabled_service_may_nothing(identify, known, caller):
    with pytest.raises(PermissionDenied, match="service 'off' is disabled") as caught:
        await identify(known(OFF), caller)
    assert caught.value.error_code == SERVICE_REFUSED


@pytest.mark.parametrize("caller", [TOKEN, IDENTITY, RECIPIENT, NOTHING])
async def test_a_certificate_of_no_service_is_refused_whatever_it_presents(identify, caller):
    with pytest.raises(Unauthenticated, match="belongs to no configured service") as caught:
        await identify(Peer(local=False, certificate_names=("spiffe://stranger",)), caller)
    assert caught.value.error_code == SERVICE_REFUSED


@pytest.mark.parametrize("names", [(), ("spiffe://both",)], ids=["plaintext", "with a certificate"])
async def test_a_token_that_is_not_valid_is_refused_even_with_a_good_certificate(identify, names):
    with pytest.raises(Unauthenticated, match="service's token"):
        await identify(Peer(local=False, certificate_names=names, bearer="bad"), TOKEN)


async def test_a_token_that_was_sent_to_another_service_is_refused(identify):
    now = int(NOON.timestamp())
    claims = {"sub": "actor-by-jwt", "aud": "gateway.v1.Presign", "iat": now, "exp": now + 60}
    stolen = jwt.PyJWS().encode(json.dumps(claims).encode(), KEY, algorithm="EdDSA")
    with pytest.raises(Unauthenticated, match=r"for the audience 'gateway\.v1\.Catalog'"):
        await identify(Peer(local=False, certificate_names=("spiffe://plain",), bearer=stolen), RECIPIENT)


async def test_a_service_s_token_goes_before_the_certificate_of_what_stands_between(identify):
    peer = Peer(local=False, certificate_names=("spiffe://mesh",), bearer=by_jwt(PLAIN).bearer)
    assert (await identify(peer, NOTHING)).principal == PLAIN


async def test_a_service_s_token_does_not_add_to_what_the_certificate_may(identify):
    peer = Peer(local=False, certificate_names=("spiffe://both",), bearer=by_jwt(PLAIN).bearer)
    with pytest.raises(PermissionDenied):
        await identify(peer, TOKEN)


@pytest.mark.parametrize("peer", [LOCAL, PLAINTEXT, by_certificate(EDGE)], ids=["local", "plaintext", "edge"])
@pytest.mark.parametrize("digest", [sha256(""), sha256("wrong"), sha256("late"), b"", b"good"])
async def test_a_missing_a_wrong_and_an_expired_token_are_refused_alike(identify, store, peer, digest):
    with pytest.raises(Unauthenticated) as caught:
        await identify(peer, pb.Caller(token_sha256=digest))
    assert caught.value.message == ONE_MESSAGE
    assert store.calls.count("find_by_token") == 1


async def test_an_identity_that_nobody_knows_is_refused_like_a_token(identify):
    for identity in (pb.VerifiedIdentity(), pb.VerifiedIdentity(issuer="https://evil", subject="acme-job")):
        with pytest.raises(Unauthenticated) as caught:
            await identify(LOCAL, pb.Caller(identity=identity))
        assert caught.value.message == ONE_MESSAGE


@pytest.mark.parametrize(
    "caller",
    [
        pb.Caller(token_sha256=sha256("gone")),
        pb.Caller(identity=pb.VerifiedIdentity(issuer="https://id", subject="gone-job")),
    ],
    ids=["token", "identity"],
)
async def test_a_disabled_recipient_is_told_so(identify, caller):
    with pytest.raises(
        PermissionDenied, match="recipient 'gone' is disabled, please contact your share provider"
    ):
        await identify(LOCAL, caller)


@pytest.mark.parametrize("peer", [LOCAL, by_certificate(ACTOR)], ids=["local", "actor"])
async def test_a_disabled_and_an_unknown_recipient_cannot_be_told_apart_by_who_acts(identify, store, peer):
    answers = []
    for name in ("gone", "nope"):
        store.calls.clear()
        with pytest.raises(NotFound) as caught:
            await identify(peer, pb.Caller(recipient=name))
        answers.append((caught.value.message.replace(name, "NAME"), list(store.calls)))
    assert answers[0] == answers[1]


async def test_the_clock_is_asked_at_each_call(store):
    clock = FakeClock(NOON - timedelta(seconds=1))
    callers = Callers(store, clock)
    caller = pb.Caller(token_sha256=sha256("late"))
    assert (await callers.identify(Visitor(local=True), caller)).principal == ACME
    clock.now = NOON
    with pytest.raises(Unauthenticated):
        await callers.identify(Visitor(local=True), caller)
