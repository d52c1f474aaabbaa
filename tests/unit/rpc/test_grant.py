from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.grant import Audience, Grant
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.errors import Unauthenticated
from gateway.rpc.grant import GrantVerifier, from_claims, to_claims
from tests.cases import each_case

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
GRANT = Grant(
    principal="acme",
    actor="lineage",
    audience=Audience.PRESIGN,
    table=TableName("Share", "Schema", "Täble"),
    table_id="id",
    location=parse_location("s3a://bucket/a b/100%"),
    auxiliary_locations=(parse_location("/clone"), parse_location("gs://bucket/x")),
    access_modes=(AccessMode.URL, AccessMode.DIR),
    history_shared=True,
    start_version=3,
    freshness=timedelta(seconds=2.5),
    generation="0123456789abcdef",
    expires_at=NOON + timedelta(seconds=60),
)
CLAIMS = to_claims(GRANT, issued_at=NOON)
ABSENT = object()


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def verifier(clock) -> GrantVerifier:
    return verifier_at(clock)


def verifier_at(clock: Clock, audience: Audience = Audience.PRESIGN, **options: int) -> GrantVerifier:
    return GrantVerifier({"k1": KEY.public_key()}, audience, clock, **options)


def sign(claims: dict[str, Any], key: Any = KEY, algorithm: str = "EdDSA", **headers: Any) -> str:
    # Below the layer that refuses to sign claims of the wrong type.
    payload = json.dumps(claims).encode()
    return jwt.PyJWS().encode(payload, key, algorithm=algorithm, headers={"kid": "k1"} | headers)


def sign_with(**changes: object) -> str:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not ABSENT}
    return sign(claims)


def test_a_grant_comes_back_as_it_was_signed(verifier):
    grant = verifier.verify(sign(CLAIMS))
    assert grant == GRANT
    # Locations are equal in any spelling; this must be the catalog's own.
    assert grant.location.text == "s3a://bucket/a b/100%"


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
texts = st.sampled_from(["/a", "s3://b/c", "s3a://b/c d", "abfss://c@h.dfs.core.windows.net/é"])


@settings(deadline=None)
@given(
    st.builds(
        Grant,
        principal=names,
        actor=names,
        audience=st.sampled_from(Audience),
        table=st.builds(TableName, names, names, names),
        table_id=names,
        location=texts.map(parse_location),
        auxiliary_locations=st.lists(texts.map(parse_location), max_size=3).map(tuple),
        access_modes=st.lists(st.sampled_from(AccessMode), unique=True).map(tuple),
        history_shared=st.booleans(),
        start_version=st.integers(0, 2**63),
        freshness=st.integers(0, 86_400_000).map(lambda ms: timedelta(milliseconds=ms)),
        revoked_at=st.none() | st.integers(0, 2**42).map(lambda ms: datetime.fromtimestamp(ms / 1000, UTC)),
        generation=names,
        expires_at=st.integers(1, 60).map(lambda seconds: NOON + timedelta(seconds=seconds)),
    )
)
def test_every_grant_survives_signing_and_verifying(grant):
    verified = verifier_at(Clock(), grant.audience).verify(sign(to_claims(grant, NOON)))
    assert verified == grant
    assert verified.location.text == grant.location.text


@pytest.mark.parametrize("audience", [Audience.SNAPSHOT, Audience.VENDING])
def test_a_grant_for_another_service_is_refused(clock, audience):
    with pytest.raises(Unauthenticated, match="not valid for this service"):
        verifier_at(clock, audience).verify(sign(CLAIMS))


def test_a_grant_holds_until_it_expires_and_not_a_moment_longer(verifier, clock):
    token = sign(CLAIMS)
    clock.now = GRANT.expires_at - timedelta(microseconds=1)
    assert verifier.verify(token) == GRANT
    clock.now = GRANT.expires_at
    with pytest.raises(Unauthenticated, match="expired"):
        verifier.verify(token)


def test_a_grant_that_is_expired_when_first_seen_is_refused_and_not_cached(clock):
    verifier = verifier_at(clock, capacity=1)
    later = sign(
        to_claims(replace(GRANT, expires_at=NOON + timedelta(seconds=61)), NOON + timedelta(seconds=1))
    )
    clock.now = GRANT.expires_at
    cached = verifier.verify(later)
    with pytest.raises(Unauthenticated, match="expired"):
        verifier.verify(sign(CLAIMS))
    assert verifier.verify(later) is cached


def test_a_catalog_whose_clock_is_five_seconds_ahead_is_believed_and_six_are_not(verifier, clock):
    clock.now = NOON - timedelta(seconds=5)
    assert verifier.verify(sign(CLAIMS)) == GRANT
    clock.now = NOON - timedelta(seconds=6)
    with pytest.raises(Unauthenticated):
        verifier.verify(sign_with(start=4))


def test_a_grant_that_would_live_longer_than_a_minute_is_refused(verifier):
    with pytest.raises(Unauthenticated):
        verifier.verify(sign_with(exp=CLAIMS["exp"] + 1))


@each_case("name", sorted(CLAIMS))
def test_a_grant_without_one_of_its_claims_is_refused(verifier, name):
    with pytest.raises(Unauthenticated):
        verifier.verify(sign_with(**{name: ABSENT}))


@each_case(
    "changes",
    [
        {"iss": "sluice/edge"},
        {"iss": ["sluice/catalog"]},
        {"aud": ["presign", "vending"]},
        {"aud": ["presign"]},
        {"aud": "PRESIGN"},
        {"sub": 1},
        {"act": None},
        {"iat": "now"},
        {"iat": float(CLAIMS["iat"])},
        {"exp": str(CLAIMS["exp"])},
        {"exp": True},
        {"exp": 10**30, "iat": 10**30},
        {"exp": -1, "iat": -1},
        {"exp": float("nan")},
        {"tbl": ["share", "schema"]},
        {"tbl": "abc"},
        {"tbl": ["share", "schema", 1]},
        {"tid": None},
        {"loc": "relative"},
        {"loc": "s3://bucket/../other"},
        {"loc": "s3://bucket/%2e%2e/other"},
        {"loc": ["s3://bucket"]},
        {"aux": "s3://bucket"},
        {"aux": ["s3://bucket/ok", "s3://bucket/.."]},
        {"acc": ["everything"]},
        {"acc": "url"},
        {"hist": 1},
        {"start": -1},
        {"start": True},
        {"start": 1.5},
        {"fresh": -1},
        {"fresh": "5s"},
        {"fresh": 10**30},
        {"rev": "2030-01-01T00:00:00Z"},
        {"rev": -1},
        {"rev": 1.5},
        {"rev": False},
        {"rev": 10**18},
        {"gen": 7},
    ],
    ids=str,
)
def test_a_claim_that_means_nothing_is_refused_though_it_is_signed(verifier, changes):
    with pytest.raises(Unauthenticated):
        verifier.verify(sign_with(**changes))


def test_a_grant_signed_by_another_key_under_our_key_s_name_is_refused(verifier):
    with pytest.raises(Unauthenticated):
        verifier.verify(sign(CLAIMS, OTHER_KEY))


@pytest.mark.parametrize("kid", ["k2", "", 1, None, ["k1"]])
def test_a_grant_that_names_no_key_of_ours_is_refused(verifier, kid):
    with pytest.raises(Unauthenticated):
        verifier.verify(unchecked_token({"alg": "EdDSA", "kid": kid}))


def test_grants_of_the_previous_key_are_believed_while_it_is_given(clock):
    verifier = GrantVerifier({"k2": KEY.public_key(), "k1": OTHER_KEY.public_key()}, Audience.PRESIGN, clock)
    assert verifier.verify(sign(CLAIMS, OTHER_KEY)) == GRANT
    assert verifier.verify(sign(CLAIMS, KEY, kid="k2")) == GRANT


def unchecked_token(header: dict[str, Any], signature: bytes = b"x" * 64) -> str:
    parts = (json.dumps(header).encode(), json.dumps(CLAIMS).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@each_case("algorithm", ["none", "None", "", "HS256", "RS256", "ES256", "Ed448", None, ["EdDSA"]])
def test_no_other_algorithm_is_believed(verifier, algorithm):
    for signature in (b"", b"x" * 64):
        with pytest.raises(Unauthenticated):
            verifier.verify(unchecked_token({"alg": algorithm, "kid": "k1"}, signature))


def test_the_public_key_is_not_taken_for_a_shared_secret(verifier):
    public = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    with pytest.raises(Unauthenticated):
        verifier.verify(sign(CLAIMS, public, "HS256"))


def test_headers_that_ask_for_another_reading_are_refused(verifier):
    headers: list[dict[str, Any]] = [{"b64": False, "crit": ["b64"]}, {"crit": ["exp"]}, {"crit": []}]
    for header in headers:
        with pytest.raises(Unauthenticated):
            verifier.verify(unchecked_token({"alg": "EdDSA", "kid": "k1", **header}))


@settings(deadline=None)
@given(st.text())
def test_any_text_is_refused_as_unauthenticated(token):
    with pytest.raises(Unauthenticated):
        verifier_at(Clock()).verify(token)


segments = st.one_of(
    st.binary(max_size=40).map(lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=5)
        | st.sampled_from(["EdDSA", "k1", "none"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["alg", "kid", "crit", "typ", "b64"]), inner, max_size=4)
        ),
        max_leaves=6,
    ).map(lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()),
)


@settings(deadline=None)
@given(segments, segments, segments)
def test_any_three_segments_are_refused_as_unauthenticated(header, payload, signature):
    with pytest.raises(Unauthenticated):
        verifier_at(Clock()).verify(f"{header}.{payload}.{signature}")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(CLAIMS)), json_values, min_size=1))
def test_any_claims_that_are_signed_are_a_grant_or_refused_as_unauthenticated(changes):
    try:
        grant = verifier_at(Clock()).verify(sign(CLAIMS | changes))
    except Unauthenticated:
        return
    assert grant == from_claims(CLAIMS | changes)


@settings(deadline=None)
@given(st.integers(0), st.integers(1, 255))
def test_a_token_with_a_changed_byte_is_refused(position, change):
    token = bytearray(sign(CLAIMS).encode())
    token[position % len(token)] ^= change
    with pytest.raises(Unauthenticated):
        verifier_at(Clock()).verify(token.decode("latin-1"))


@pytest.mark.parametrize("depth", [10_000, 1_000_000])
def test_a_header_nested_without_end_is_refused_as_unauthenticated(verifier, depth):
    header = base64.urlsafe_b64encode(b"[" * depth).rstrip(b"=").decode()
    with pytest.raises(Unauthenticated):
        verifier.verify(f"{header}.e30.e30")


def test_a_token_longer_than_any_grant_is_refused_though_it_is_signed(verifier):
    with pytest.raises(Unauthenticated):
        verifier.verify(sign_with(gen="g" * 64 * 1024))


def test_a_refusal_says_nothing_of_what_was_presented(verifier):
    with pytest.raises(Unauthenticated) as caught:
        verifier.verify(sign(CLAIMS, OTHER_KEY))
    assert not any(word in caught.value.message for word in ("acme", "bucket", "k1", "ignature"))


def test_a_grant_is_verified_once_and_cached(verifier, monkeypatch):
    decode = Mock(wraps=jwt.decode)
    monkeypatch.setattr(jwt, "decode", decode)
    token = sign(CLAIMS)
    first = verifier.verify(token)
    assert verifier.verify(token) is first
    assert decode.call_count == 1
    verifier.verify(sign_with(start=4))
    assert decode.call_count == 2


def test_a_refused_token_is_not_cached_as_a_grant(clock):
    verifier = verifier_at(clock, capacity=1)
    cached = verifier.verify(sign(CLAIMS))
    token = sign(CLAIMS, OTHER_KEY)
    for _ in range(2):
        with pytest.raises(Unauthenticated):
            verifier.verify(token)
    assert verifier.verify(sign(CLAIMS)) is cached


def test_cached_grants_beyond_the_capacity_evict_the_oldest(clock):
    verifier = verifier_at(clock, capacity=3)
    tokens = [sign_with(start=number) for number in range(5)]
    grants = [verifier.verify(token) for token in tokens for _ in range(2)][::2]
    for token, grant in list(zip(tokens, grants, strict=True))[2:]:
        assert verifier.verify(token) is grant
    for token, grant in list(zip(tokens, grants, strict=True))[:2]:
        fresh = verifier.verify(token)
        assert fresh == grant
        assert fresh is not grant
