from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.errors import Unauthenticated
from gateway.rpc.caller import ServiceCallers
from gateway.rpc.peer import Peer
from tests.fakes.callers import service
from tests.fakes.catalog_store import FakeCatalogStore
from tests.unit.services.catalog.calls import NOON, FakeClock

BILLING, BROKER, REPORTS = service("billing"), service("broker"), service("reports")
PRESIGN, CATALOG = "gateway.v1.Presign", "gateway.v1.Catalog"
KEY = Ed25519PrivateKey.generate()
PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture
def callers():
    store = FakeCatalogStore(
        certificates={"spiffe://x/billing": BILLING, "spiffe://x/broker": BROKER},
        service_keys={"broker": (BROKER, (PEM,)), "reports": (REPORTS, (PEM,))},
    )
    return ServiceCallers(store, FakeClock())


def certified(*names: str, bearer: str = "") -> Peer:
    return Peer(local=False, certified=True, certificate_names=names, bearer=bearer)


def token_of(name: str, audience: str = PRESIGN) -> str:
    now = int(NOON.timestamp())
    claims = {"sub": name, "aud": audience, "iat": now, "exp": now + 60}
    return jwt.encode(claims, KEY, algorithm="EdDSA")


async def test_any_name_of_a_certificate_may_be_the_services(callers):
    peer = certified("x.internal", "spiffe://x/billing")
    assert await callers.identify(peer, PRESIGN) == BILLING


@pytest.mark.parametrize("peer", [Peer(local=True), Peer(local=False)], ids=["this process", "plain text"])
async def test_one_that_claims_to_be_no_service_is_none(callers, peer):
    assert await callers.identify(peer, PRESIGN) is None


@pytest.mark.parametrize("names", [(), ("spiffe://x/other",)])
async def test_a_certificate_of_nobody_is_refused(callers, names):
    with pytest.raises(Unauthenticated) as caught:
        await callers.identify(certified(*names), PRESIGN)
    assert caught.value.error_code == "SERVICE_REFUSED"


async def test_a_token_counts_more_than_the_certificate(callers):
    with pytest.raises(Unauthenticated, match="token"):
        await callers.identify(certified("spiffe://x/billing", bearer="not.a.token"), PRESIGN)
    assert (
        await callers.identify(certified("spiffe://x/billing", bearer=token_of("reports")), PRESIGN)
        == REPORTS
    )


async def test_a_token_for_one_service_is_refused_by_another(callers):
    peer = certified("spiffe://x/presign", bearer=token_of("reports", PRESIGN))
    with pytest.raises(Unauthenticated, match=r"for the audience 'gateway\.v1\.Catalog'"):
        await callers.identify(peer, CATALOG)


async def test_who_is_known_by_both_shows_both(callers):
    peer = certified("x.internal", "spiffe://x/broker", bearer=token_of("broker"))
    assert await callers.identify(peer, PRESIGN) == BROKER


@pytest.mark.parametrize(
    ("peer", "words"),
    [
        (certified("spiffe://x/broker"), "has to send a token as well"),
        (
            certified("spiffe://x/presign", bearer=token_of("broker")),
            "certificate is not that of the service",
        ),
        (
            certified("spiffe://x/billing", bearer=token_of("broker")),
            "certificate is not that of the service",
        ),
        (Peer(local=False, bearer=token_of("broker")), "certificate is not that of the service"),
    ],
    ids=["certificate alone", "certificate of nobody", "certificate of another", "no certificate"],
)
async def test_who_is_known_by_both_is_not_known_by_one(callers, peer, words):
    with pytest.raises(Unauthenticated, match=words) as caught:
        await callers.identify(peer, PRESIGN)
    assert caught.value.error_code == "SERVICE_REFUSED"
