from __future__ import annotations

from datetime import timedelta

import jwt

from gateway.domain.grant import Audience
from gateway.services.catalog.grant_signer import GrantSigner
from tests.fakes.grants import GRANT, NOON, Grants


def test_a_signed_grant_is_believed_by_the_service_it_is_for():
    grants = Grants()
    assert grants.verifier(Audience.PRESIGN).verify(grants.sign()) == GRANT


def test_a_token_names_its_key_algorithm_and_issuer_and_lives_a_minute():
    grants = Grants(now=NOON + timedelta(microseconds=999_999))
    token = grants.sign()
    header = jwt.get_unverified_header(token)
    assert header == {"alg": "EdDSA", "kid": "k1", "typ": "JWT"}
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["iss"], claims["aud"]) == ("sluice/catalog", "presign")
    assert claims["exp"] - claims["iat"] == 60
    assert claims["iat"] == int(NOON.timestamp())


def test_a_signer_does_not_show_its_key():
    grants = Grants()
    assert grants.key.private_bytes_raw().hex() not in repr(vars(GrantSigner("k1", grants.key, grants.clock)))
