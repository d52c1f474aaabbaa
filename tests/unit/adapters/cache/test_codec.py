from __future__ import annotations

import json
from datetime import timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.cache.codec import Packed, pack, unpack
from gateway.domain.credential import (
    AwsTempCredentials,
    AzureDelegationKey,
    AzureUserDelegationSas,
    Credential,
    GcpOauthToken,
)
from tests.cases import each_case
from tests.unit.adapters.cache.doubles import NOON

TEXT = st.text(max_size=20)
SECRETS = st.one_of(
    st.builds(
        AwsTempCredentials, access_key_id=TEXT, secret_access_key=TEXT, session_token=TEXT, region=TEXT
    ),
    st.builds(AzureUserDelegationSas, sas_token=TEXT),
    st.builds(GcpOauthToken, oauth_token=TEXT),
    st.builds(
        AzureDelegationKey,
        oid=TEXT,
        tid=TEXT,
        start=TEXT,
        expiry=TEXT,
        service=TEXT,
        version=TEXT,
        value=TEXT,
    ),
)
MOMENTS = st.integers(min_value=0, max_value=10**12).map(lambda n: NOON + timedelta(microseconds=n))
CREDENTIALS = st.builds(Credential, id=TEXT, secret=SECRETS, expires_at=MOMENTS)


@given(CREDENTIALS, st.lists(st.binary(max_size=16), max_size=2).map(tuple))
def test_what_is_packed_is_unpacked(credential, epochs):
    packed = Packed(credential, epochs)
    assert unpack(pack(packed)) == packed


def test_a_moment_of_another_zone_is_the_same_moment():
    east = NOON.astimezone(timezone(timedelta(hours=9)))
    credential = Credential(id="c", secret=GcpOauthToken(oauth_token="t"), expires_at=east)
    unpacked = unpack(pack(Packed(credential, ())))
    assert unpacked is not None
    assert unpacked.value.expires_at == NOON


@each_case(
    "change",
    [{"kind": "oci"}, {"secret": {"token": "t"}}, {"expires": "soon"}, {"epochs": ["xyz"]}, {"epochs": 1}],
)
def test_what_another_program_packed_is_none(change):
    credential = Credential(id="c", secret=GcpOauthToken(oauth_token="t"), expires_at=NOON)
    content = json.loads(pack(Packed(credential, (b"e",))))
    assert unpack(json.dumps(content | change).encode()) is None


@given(st.binary())
def test_garbage_is_none(data):
    assert unpack(data) is None
