from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.principal import Principal, PrincipalKind
from gateway.errors import Unauthenticated
from gateway.rpc.service_token import ServiceTokens
from tests.cases import each_case
from tests.fakes.catalog_store import FakeCatalogStore
from tests.unit.services.catalog.calls import NOON, FakeClock

EDDSA = Ed25519PrivateKey.generate()
RSA = rsa.generate_private_key(65537, 2048)
ES256 = ec.generate_private_key(ec.SECP256R1())
NOW = int(NOON.timestamp())
PRESIGN, CATALOG = "gateway.v1.Presign", "gateway.v1.Catalog"
CLAIMS: dict[str, Any] = {"sub": "lineage", "aud": PRESIGN, "iat": NOW, "exp": NOW + 300}
LINEAGE = Principal(name="lineage", kind=PrincipalKind.SERVICE, shares=frozenset())


def pem_of(key: Any) -> str:
    public: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return public.decode()


def pems_of(*keys: Any) -> tuple[str, ...]:
    return tuple(pem_of(key) for key in keys)


def tokens_of(*keys: Any, pem: str = "", clock: FakeClock | None = None, **options: int) -> ServiceTokens:
    store = FakeCatalogStore(service_keys={"lineage": (LINEAGE, (pem,) if pem else pems_of(*keys))})
    return ServiceTokens(store, clock or FakeClock(), **options)


def sign(key: Any, algorithm: str, **changes: Any) -> str:
    return jwt.PyJWS().encode(json.dumps(CLAIMS | changes).encode(), key, algorithm=algorithm)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(EDDSA, "EdDSA"), (RSA, "RS256"), (ES256, "ES256")],
    ids=["EdDSA", "RS256", "ES256"],
)
async def test_a_token_signed_by_the_configured_key_finds_its_service(key, algorithm):
    tokens = tokens_of(key)
    assert (await tokens.identify(sign(key, algorithm), PRESIGN)).principal == LINEAGE
    assert (await tokens.identify(sign(key, algorithm, exp=NOW + 9), PRESIGN)).principal == LINEAGE


async def test_a_list_of_one_audience_is_that_audience():
    token = sign(EDDSA, "EdDSA", aud=[PRESIGN])
    assert (await tokens_of(EDDSA).identify(token, PRESIGN)).principal == LINEAGE


# Presign was sent the first, and has it still.
@each_case("audience", [PRESIGN, [PRESIGN], [PRESIGN, CATALOG], [CATALOG, "other"], "sluice"], ids=str)
async def test_a_token_that_another_service_holds_is_refused(audience):
    with pytest.raises(Unauthenticated, match=r"for the audience 'gateway\.v1\.Catalog' alone"):
        await tokens_of(EDDSA).identify(sign(EDDSA, "EdDSA", aud=audience), CATALOG)


async def test_a_token_that_was_verified_for_a_service_is_refused_by_another_of_the_same_process():
    tokens, token = tokens_of(EDDSA), sign(EDDSA, "EdDSA")
    for _ in range(2):
        await tokens.identify(token, PRESIGN)
        with pytest.raises(Unauthenticated):
            await tokens.identify(token, CATALOG)


@each_case(
    "changes",
    [
        {"sub": "other"},
        {"sub": ""},
        {"sub": 1},
        {"sub": None},
        {"aud": "other"},
        {"aud": []},
        {"aud": None},
        {"exp": NOW},
        {"exp": NOW - 1},
        {"exp": None},
        {"exp": "soon"},
        {"exp": float("nan")},
        {"iat": None},
        {"iat": NOW + 6},
        {"iat": NOW - 3601},
        {"iat": True},
        {"iat": float("nan")},
        {"iat": 10**400},
        {"nbf": NOW + 6},
        {"nbf": "now"},
    ],
    ids=str,
)
async def test_a_token_with_a_claim_that_does_not_hold_is_refused(changes):
    with pytest.raises(Unauthenticated):
        await tokens_of(EDDSA).identify(sign(EDDSA, "EdDSA", **changes), PRESIGN)


@each_case("claim", ["sub", "aud", "iat", "exp"])
async def test_a_token_without_a_claim_is_refused(claim):
    claims = {name: value for name, value in CLAIMS.items() if name != claim}
    token = jwt.PyJWS().encode(json.dumps(claims).encode(), EDDSA, algorithm="EdDSA")
    with pytest.raises(Unauthenticated):
        await tokens_of(EDDSA).identify(token, PRESIGN)


@each_case("changes", [{"iat": NOW + 5}, {"iat": NOW - 3600}, {"exp": NOW + 1}, {"nbf": NOW + 5}])
async def test_a_token_at_the_edge_of_its_time_is_believed(changes):
    assert (await tokens_of(EDDSA).identify(sign(EDDSA, "EdDSA", **changes), PRESIGN)).principal == LINEAGE


async def test_a_token_that_would_live_for_days_is_believed_for_an_hour():
    clock = FakeClock()
    tokens = tokens_of(EDDSA, clock=clock)
    token = sign(EDDSA, "EdDSA", exp=NOW + 90 * 86400)
    assert (await tokens.identify(token, PRESIGN)).principal == LINEAGE
    clock.now += timedelta(hours=1, seconds=1)
    with pytest.raises(Unauthenticated):
        await tokens.identify(token, PRESIGN)


async def test_a_token_signed_by_another_key_is_refused():
    with pytest.raises(Unauthenticated):
        await tokens_of(EDDSA).identify(sign(Ed25519PrivateKey.generate(), "EdDSA"), PRESIGN)


# The configured key as a shared secret, which everybody knows.
@pytest.mark.parametrize("key", [EDDSA, RSA, ES256], ids=["EdDSA", "RS256", "ES256"])
async def test_the_public_key_is_not_taken_for_a_shared_secret(key):
    parts = ({"alg": "HS256", "typ": "JWT"}, CLAIMS)
    signed = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        signed, pem_of(key).encode()
    )
    token = b".".join([signed, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()
    with pytest.raises(Unauthenticated):
        await tokens_of(key).identify(token, PRESIGN)


@pytest.mark.parametrize(
    ("key", "algorithm"), [(RSA, "RS384"), (RSA, "PS256"), (RSA, "none")], ids=["RS384", "PS256", "none"]
)
async def test_no_other_algorithm_is_believed(key, algorithm):
    token = sign("" if algorithm == "none" else key, algorithm)
    with pytest.raises(Unauthenticated):
        await tokens_of(key).identify(token, PRESIGN)


P384 = ec.generate_private_key(ec.SECP384R1())
ED448 = Ed448PrivateKey.generate()


@pytest.mark.parametrize(("key", "algorithm"), [(P384, "ES384"), (ED448, "EdDSA")], ids=["P-384", "Ed448"])
async def test_a_key_of_a_kind_that_is_not_supported_verifies_nothing(key, algorithm):
    with pytest.raises(Unauthenticated):
        await tokens_of(key).identify(sign(key, algorithm), PRESIGN)


@pytest.mark.parametrize("pem", ["not a key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
async def test_a_broken_key_verifies_nothing(pem):
    with pytest.raises(Unauthenticated):
        await tokens_of(pem=pem).identify(sign(EDDSA, "EdDSA"), PRESIGN)


async def test_a_weak_rsa_key_verifies_nothing():
    weak = rsa.generate_private_key(65537, 1024)
    tokens = tokens_of(weak)
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = sign(weak, "RS256")
    with pytest.raises(Unauthenticated):
        await tokens.identify(token, PRESIGN)


@settings(deadline=None)
@given(st.text())
async def test_any_text_is_refused_as_unauthenticated(token):
    with pytest.raises(Unauthenticated):
        await tokens_of(EDDSA).identify(token, PRESIGN)


async def test_all_refusals_sound_alike_and_quote_nothing():
    messages = set()
    for token in (
        "",
        "a.b.c",
        sign(EDDSA, "EdDSA", sub="other"),
        sign(EDDSA, "EdDSA", exp=NOW),
        "x" * 20_000,
    ):
        with pytest.raises(Unauthenticated) as caught:
            await tokens_of(EDDSA).identify(token, PRESIGN)
        messages.add(caught.value.message)
    assert len(messages) == 1
    assert "lineage" not in messages.pop()


async def test_a_rotated_key_is_used_from_the_next_token_on():
    store = FakeCatalogStore(service_keys={"lineage": (LINEAGE, pems_of(EDDSA))})
    tokens = ServiceTokens(store, FakeClock())
    assert (await tokens.identify(sign(EDDSA, "EdDSA"), PRESIGN)).principal == LINEAGE
    store.service_keys["lineage"] = (LINEAGE, pems_of(ES256))
    with pytest.raises(Unauthenticated):
        await tokens.identify(sign(EDDSA, "EdDSA"), PRESIGN)
    assert (await tokens.identify(sign(ES256, "ES256"), PRESIGN)).principal == LINEAGE


@pytest.mark.parametrize("keys", [(EDDSA, ES256), (ES256, EDDSA)], ids=["old first", "new first"])
async def test_while_keys_are_rotated_each_of_them_verifies(keys):
    tokens = tokens_of(*keys)
    for _ in range(2):
        assert (await tokens.identify(sign(EDDSA, "EdDSA", jti="1"), PRESIGN)).principal == LINEAGE
        assert (await tokens.identify(sign(ES256, "ES256"), PRESIGN)).principal == LINEAGE
    with pytest.raises(Unauthenticated):
        await tokens.identify(sign(Ed25519PrivateKey.generate(), "EdDSA"), PRESIGN)


async def test_a_key_that_was_taken_from_the_list_verifies_no_more():
    store = FakeCatalogStore(service_keys={"lineage": (LINEAGE, pems_of(EDDSA, ES256))})
    tokens, token = ServiceTokens(store, FakeClock()), sign(EDDSA, "EdDSA")
    assert (await tokens.identify(token, PRESIGN)).principal == LINEAGE

    store.service_keys["lineage"] = (LINEAGE, pems_of(ES256))

    with pytest.raises(Unauthenticated):
        await tokens.identify(token, PRESIGN)


async def test_parsed_keys_are_cached_up_to_their_maximum(monkeypatch):
    parse = Mock(wraps=load_pem_public_key)
    monkeypatch.setattr("gateway.rpc.service_token.load_pem_public_key", parse)
    store = FakeCatalogStore()
    tokens = ServiceTokens(store, FakeClock(), max_keys=2)
    keys = [Ed25519PrivateKey.generate() for _ in range(5)]

    async def parses_for(key: Ed25519PrivateKey, jti: str) -> int:
        before = parse.call_count
        store.service_keys["lineage"] = (LINEAGE, pems_of(key))
        # Each token is another: none is verified already.
        assert (await tokens.identify(sign(key, "EdDSA", jti=jti), PRESIGN)).principal == LINEAGE
        return parse.call_count - before

    for key in keys:
        assert [await parses_for(key, jti) for jti in ("1", "2")] == [1, 0]
    # Newest first, so that none is evicted before its turn: three at least of five were.
    assert sum([await parses_for(key, "3") for key in reversed(keys)]) >= 3


async def test_a_token_that_was_verified_before_is_refused_once_its_key_is_another():
    store = FakeCatalogStore(service_keys={"lineage": (LINEAGE, pems_of(EDDSA))})
    tokens, token = ServiceTokens(store, FakeClock()), sign(EDDSA, "EdDSA")
    assert (await tokens.identify(token, PRESIGN)).principal == LINEAGE

    store.service_keys = {"lineage": (LINEAGE, pems_of(Ed25519PrivateKey.generate()))}

    with pytest.raises(Unauthenticated):
        await tokens.identify(token, PRESIGN)


async def test_a_token_that_was_verified_before_still_expires():
    clock = FakeClock()
    store = FakeCatalogStore(service_keys={"lineage": (LINEAGE, pems_of(EDDSA))})
    tokens, token = ServiceTokens(store, clock), sign(EDDSA, "EdDSA")
    assert (await tokens.identify(token, PRESIGN)).principal == LINEAGE

    clock.now += timedelta(seconds=300)

    with pytest.raises(Unauthenticated):
        await tokens.identify(token, PRESIGN)


async def test_verified_tokens_are_cached_up_to_their_maximum(monkeypatch):
    decode = Mock(wraps=jwt.decode)
    monkeypatch.setattr(jwt, "decode", decode)
    tokens = tokens_of(EDDSA, max_tokens=2)
    signed = [sign(EDDSA, "EdDSA", jti=str(number)) for number in range(5)]

    async def verified(token: str) -> int:
        decode.reset_mock()
        assert (await tokens.identify(token, PRESIGN)).principal == LINEAGE
        # The subject is read without a key, to find the service.
        return sum(len(call.args) > 1 for call in decode.call_args_list)

    assert [await verified(token) for token in signed] == [1] * 5
    assert [await verified(token) for token in reversed(signed)] == [0, 0, 1, 1, 1]
