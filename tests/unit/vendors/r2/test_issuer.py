from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location, parse_location
from gateway.domain.scope import Scope
from gateway.errors import InvalidArgument, Unavailable, Unsupported
from tests.unit.vendors.r2.cloudflare import (
    ACCOUNT,
    API_TOKEN,
    ENDPOINT,
    NOON,
    PARENT,
    SECRET,
    FakeCloudflare,
    failure,
    options,
    success,
)
from vendors.http import Reply
from vendors.r2.api import CloudflareApi
from vendors.r2.identity import Identity
from vendors.r2.issuer import ApiIssuer, LocalIssuer, body_for, claims_for

TABLE = parse_location("s3://lake/sales/orders")
SCOPE = Scope(location=TABLE, life=timedelta(hours=1))

# What a location may be spelled with.
spelled = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="/\\")
names = st.text(spelled, min_size=1, max_size=6).filter(lambda name: name.strip() and name[-1] != ".")
paths = st.lists(names, min_size=1, max_size=4).map("/".join)


def at(path: str) -> Location:
    try:
        return parse_location(f"s3://lake/{path}")
    except InvalidArgument:
        assume(False)
        raise


def local(cloudflare: FakeCloudflare, **changes: object) -> LocalIssuer:
    chosen = options(**changes)
    return LocalIssuer(options=chosen, identity=Identity(chosen.identity), clock=cloudflare.clock)


def by_api(cloudflare: FakeCloudflare) -> ApiIssuer:
    chosen = options(mint="api", apiToken={"value": API_TOKEN})
    assert chosen.api_token is not None
    api = CloudflareApi(endpoint=chosen.api_endpoint, token=chosen.api_token, call=cloudflare.call)
    return ApiIssuer(options=chosen, identity=Identity(chosen.identity), api=api, clock=cloudflare.clock)


def keys_of(credential: Credential) -> AwsTempCredentials:
    assert isinstance(credential.secret, AwsTempCredentials)
    return credential.secret


def opened(credential: Credential) -> tuple[Any, Any, str]:
    """Return header, claims and text of the token, verified by hand as R2 would."""
    kind, _, text = base64.b64decode(keys_of(credential).session_token).decode().partition("/")
    assert kind == "jwt"
    signed, _, signature = text.rpartition(".")
    expected = hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest()
    assert _unpad(signature) == expected
    header, claims = (json.loads(_unpad(part)) for part in signed.split("."))
    return header, claims, text


def _unpad(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.fixture
def cloudflare():
    return FakeCloudflare()


async def test_local_credential_is_derived_as_cloudflare_documents(cloudflare):
    credential = await local(cloudflare).issue(SCOPE)

    header, claims, text = opened(credential)
    assert header == {"alg": "HS256", "typ": "JWT"}
    assert claims == {
        "bucket": "lake",
        "scope": "object-read-only",
        "actions": ["GetObject", "HeadObject", "ListObjectsV2"],
        "paths": {"prefixPaths": ["sales/orders/"], "objectPaths": ["sales/orders"]},
        "sub": ACCOUNT,
        "iss": PARENT,
        "aud": f"{ACCOUNT}.r2.cloudflarestorage.com",
        # Cloudflare's clock may be behind.
        "iat": int(NOON.timestamp()) - 300,
        "exp": int(NOON.timestamp()) + 3600,
    }
    keys = keys_of(credential)
    assert keys.access_key_id == PARENT
    assert keys.secret_access_key == hashlib.sha256(text.encode()).hexdigest()
    assert (keys.region, keys.endpoint) == ("auto", ENDPOINT)
    assert credential.expires_at == NOON + timedelta(hours=1)
    assert cloudflare.sent == []


@given(paths)
@example("*")
@example('"}, "scope": "admin-read-write')
async def test_local_claims_hold_the_path_as_it_is(path):
    location = at(path)

    _, claims, _ = opened(await local(FakeCloudflare()).issue(replace(SCOPE, location=location)))

    assert claims["paths"] == {"prefixPaths": [f"{location.path}/"], "objectPaths": [location.path]}
    assert claims["scope"] == "object-read-only"


@given(paths, st.text(max_size=12))
@example("orders", "2/part-0.parquet")
@example("orders", "")
def test_limits_open_the_directory_and_its_bare_name_only(path, rest):
    location = at(path)
    body = body_for(location)
    key = location.path + rest

    for prefixes, objects in (
        claims_for(location)["paths"].values(),
        (body["prefixes"], body["objects"]),
    ):
        # As Cloudflare states it: keys that start with a prefix, and exact keys.
        is_open = any(key.startswith(prefix) for prefix in prefixes) or key in objects
        assert is_open == (rest == "" or rest.startswith("/"))


def test_only_the_root_has_no_paths():
    root = parse_location("s3://lake")

    assert "paths" not in claims_for(root)
    assert not {"prefixes", "objects"} & set(body_for(root))
    assert "paths" in claims_for(TABLE)


async def test_jurisdiction_is_part_of_the_audience_and_the_endpoint(cloudflare):
    credential = await local(cloudflare, jurisdiction="eu").issue(SCOPE)

    _, claims, _ = opened(credential)
    assert claims["aud"] == f"{ACCOUNT}.eu.r2.cloudflarestorage.com"
    assert keys_of(credential).endpoint == f"https://{ACCOUNT}.eu.r2.cloudflarestorage.com"


async def test_credential_names_nobody_and_nothing_secret_is_in_its_id_or_repr(cloudflare):
    issuer = local(cloudflare)
    first = await issuer.issue(replace(SCOPE, recipient="a"))
    second = await issuer.issue(replace(SCOPE, recipient="b"))

    assert not issuer.names_recipients
    assert first == second
    keys = keys_of(first)
    for secret in (SECRET, keys.secret_access_key, keys.session_token):
        assert secret not in repr(first)
        assert secret not in first.id
    assert first.id not in {PARENT, keys.secret_access_key[:32]}


async def test_tables_and_moments_have_credentials_of_their_own(cloudflare):
    issuer = local(cloudflare)
    first = await issuer.issue(SCOPE)
    other = await issuer.issue(replace(SCOPE, location=parse_location("s3://lake/sales/orders2")))
    cloudflare.now += timedelta(seconds=1)
    later = await issuer.issue(SCOPE)

    assert len({first.id, other.id, later.id}) == 3


async def test_life_is_a_week_at_most(cloudflare):
    credential = await local(cloudflare).issue(replace(SCOPE, life=timedelta(days=30)))

    assert credential.expires_at == NOON + timedelta(days=7) - timedelta(minutes=5)


async def test_secret_file_that_is_gone_is_unavailable(cloudflare, tmp_path, caplog):
    file = tmp_path / "secret"
    identity = {"kind": "keys", "accessKeyId": PARENT, "secretAccessKey": {"file": str(file)}}
    issuer = local(cloudflare, identity=identity)
    with pytest.raises(Unavailable) as caught:
        await issuer.issue(SCOPE)
    file.write_text("")
    with pytest.raises(Unavailable):
        await issuer.issue(SCOPE)
    file.write_text(f"{SECRET}\n")

    opened(await issuer.issue(SCOPE))
    assert str(file) not in caught.value.message
    assert f"the file {file} cannot be read: No such file" in caplog.text


async def test_api_is_asked_for_the_same_limits(cloudflare):
    credential = await by_api(cloudflare).issue(SCOPE)

    (request,) = cloudflare.sent
    assert request.method == "POST"
    assert request.url == (
        f"https://api.cloudflare.com/client/v4/accounts/{ACCOUNT}/r2/temp-access-credentials"
    )
    assert request.headers["Authorization"] == f"Bearer {API_TOKEN}"
    assert cloudflare.body() == {
        "bucket": "lake",
        "permission": "object-read-only",
        "prefixes": ["sales/orders/"],
        "objects": ["sales/orders"],
        "parentAccessKeyId": PARENT,
        "ttlSeconds": 3600,
    }
    assert credential.secret == AwsTempCredentials(
        access_key_id="k", secret_access_key="s", session_token="t", region="auto", endpoint=ENDPOINT
    )


async def test_api_credential_ends_as_counted_from_before_the_call(cloudflare):
    chosen = options(mint="api", apiToken={"value": API_TOKEN})

    async def slow(request):
        cloudflare.now += timedelta(seconds=30)
        return await cloudflare.call(request)

    assert chosen.api_token is not None
    api = CloudflareApi(endpoint=chosen.api_endpoint, token=chosen.api_token, call=slow)
    issuer = ApiIssuer(options=chosen, identity=Identity(chosen.identity), api=api, clock=cloudflare.clock)

    assert (await issuer.issue(SCOPE)).expires_at == NOON + timedelta(hours=1)


@pytest.mark.parametrize(
    "reply",
    [
        success(),
        success(accessKeyId="k", secretAccessKey="s"),
        success(accessKeyId="k", secretAccessKey="s", sessionToken=""),
        success(accessKeyId="k", secretAccessKey="s", sessionToken=None),
        success(accessKeyId="k", secretAccessKey=SECRET, sessionToken="t"),
        Reply(status=200, body=b"<html>"),
        Reply(status=200, body=b'{"success": false, "result": {"accessKeyId": "k"}}'),
        Reply(status=200, body=b'{"success": true, "result": []}'),
    ],
)
async def test_api_answer_without_temporary_keys_is_refused(cloudflare, reply, caplog):
    cloudflare.reply = reply

    with pytest.raises(Unavailable):
        await by_api(cloudflare).issue(SCOPE)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("status", [429, 503])
async def test_api_that_throttles_says_how_long_to_wait(cloudflare, status):
    cloudflare.reply = replace(failure(status), headers={"retry-after": "9"})

    with pytest.raises(Unavailable) as caught:
        await by_api(cloudflare).issue(SCOPE)
    assert caught.value.retry_after == timedelta(seconds=9)


async def test_limits_that_the_api_refuses_are_refused_for_good(cloudflare):
    cloudflare.reply = failure(400, 10020)

    with pytest.raises(Unsupported):
        await by_api(cloudflare).issue(SCOPE)


@pytest.mark.parametrize(
    ("status", "code"), [(400, 6003), (401, 10000), (403, 10000), (404, 7003), (500, 10001)]
)
async def test_refusal_of_the_gateway_itself_is_unavailable_and_logged(cloudflare, status, code, caplog):
    cloudflare.reply = failure(status, code)

    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable) as caught:
        await by_api(cloudflare).issue(SCOPE)
    assert caught.value.retry_after is None
    assert f"{status}, codes [{code}]" in caplog.text
    assert API_TOKEN not in caplog.text + caught.value.message


async def test_silence_is_unavailable(cloudflare):
    cloudflare.reply = None

    with pytest.raises(Unavailable):
        await by_api(cloudflare).issue(SCOPE)
