from __future__ import annotations

import re

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.domain.credential import AwsTempCredentials, Credential, GcpOauthToken
from gateway.errors import Unavailable, Unsupported
from tests.unit.vendors.r2.cloudflare import ENDPOINT, NOON, PARENT, SECRET, FakeCloudflare, options
from vendors.http import Reply
from vendors.obstore_error import Failure, StoreRefused, read_error
from vendors.r2.identity import Identity
from vendors.r2.listing import Listing, list_request

KEYS = AwsTempCredentials(access_key_id="key", secret_access_key="secret", session_token="session+/=")
CREDENTIAL = Credential(id="1", secret=KEYS, expires_at=NOON)


@pytest.fixture
def cloudflare():
    return FakeCloudflare()


@pytest.fixture
def listing(cloudflare):
    identity = Identity(options().identity)
    return Listing(
        endpoint=ENDPOINT, bucket="lake", identity=identity, call=cloudflare.call, clock=cloudflare.clock
    )


def listed(*keys: str, encoding: str = "") -> Reply:
    contents = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in keys)
    return Reply(status=200, body=f"<ListBucketResult>{encoding}{contents}</ListBucketResult>".encode())


def refused(status: int, code: str) -> Reply:
    return Reply(
        status=status, body=f"<Error><Code>{code}</Code><Message>session+/=</Message></Error>".encode()
    )


@given(st.text(max_size=30), st.sampled_from(["", "session+/="]))
@example("sales/orders", "")
@example("ö r'd\"ers/💧 +&=%41*~", "session+/=")
def test_signature_is_the_one_that_the_sdk_makes(prefix, session):
    keys = AwsTempCredentials(access_key_id="key", secret_access_key="secret", session_token=session)

    ours = list_request(ENDPOINT, "lake", prefix, keys, NOON)

    theirs = AWSRequest("GET", ours.url)
    signer = S3SigV4Auth(Credentials("key", "secret", session or None), "s3", "auto")
    theirs.headers["X-Amz-Content-SHA256"] = ours.headers["x-amz-content-sha256"]
    theirs.headers["X-Amz-Date"] = ours.headers["x-amz-date"]
    if session:
        theirs.headers["X-Amz-Security-Token"] = session
    theirs.context["timestamp"] = ours.headers["x-amz-date"]
    text = signer.string_to_sign(theirs, signer.canonical_request(theirs))
    expected = signer.signature(text, theirs)

    assert re.search("Signature=([0-9a-f]+)$", ours.headers["authorization"])[1] == expected  # type: ignore[index]


async def test_prefix_is_asked_for_as_it_is(cloudflare, listing):
    cloudflare.reply = listed("sales/orders2/x")

    assert await listing(CREDENTIAL, "sales/orders") == ["sales/orders2/x"]
    (request,) = cloudflare.sent
    assert request.url == f"{ENDPOINT}/lake?encoding-type=url&list-type=2&max-keys=1000&prefix=sales%2Forders"
    assert request.headers["x-amz-security-token"] == "session+/="


async def test_without_a_credential_it_lists_as_the_storage(cloudflare, listing):
    cloudflare.reply = listed()

    assert await listing(None, "") == []
    (request,) = cloudflare.sent
    assert f"Credential={PARENT}/" in request.headers["authorization"]
    assert "x-amz-security-token" not in request.headers
    assert SECRET not in repr(request)


async def test_keys_are_read_in_both_encodings(cloudflare, listing):
    cloudflare.reply = listed("a+b%2Fc%C3%B6", encoding="<EncodingType>url</EncodingType>")
    assert await listing(CREDENTIAL, "a") == ["a b/cö"]

    cloudflare.reply = listed("a+b/&lt;c&gt;&amp;%41")
    assert await listing(CREDENTIAL, "a") == ["a+b/<c>&%41"]


async def test_listing_is_read_as_r2_writes_it(cloudflare, listing):
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>lake</Name>'
        "<Contents><Key>a</Key><Owner><Key>not-a-key</Key></Owner></Contents><Contents><Key>b</Key></Contents>"
        "<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes></ListBucketResult>"
    )
    cloudflare.reply = Reply(status=200, body=body.encode())

    assert await listing(CREDENTIAL, "") == ["a", "b"]


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (refused(403, "AccessDenied"), Failure.DENIED),
        (refused(403, "SignatureDoesNotMatch"), Failure.FAILED),
        (refused(401, "Unauthorized"), Failure.FAILED),
        (refused(404, "NoSuchBucket"), Failure.MISSING),
        (refused(500, "InternalError"), Failure.FAILED),
        (Reply(status=403, body=b"<html>"), Failure.FAILED),
        (Reply(status=403, body=b"<Error><Code>AccessDenied</Code>"), Failure.FAILED),
        (Reply(status=403, body=b"<x><Code>Sig</Code></x><Code>AccessDenied</Code>"), Failure.FAILED),
        (
            Reply(status=403, body=b"<Error><Message>&lt;Code>AccessDenied&lt;/Code></Message></Error>"),
            Failure.FAILED,
        ),
        (
            Reply(status=403, body=b"<!DOCTYPE a><Error><Code>AccessDenied</Code></Error>"),
            Failure.FAILED,
        ),
        (Reply(status=302), Failure.FAILED),
    ],
)
async def test_only_a_refusal_of_the_credential_is_a_denial(cloudflare, listing, reply, failure):
    cloudflare.reply = reply

    with pytest.raises(StoreRefused) as caught:
        await listing(CREDENTIAL, "sales/")
    found = read_error(caught.value)
    assert found.failure is failure
    assert "session" not in found.words


async def test_code_that_repeats_what_was_sent_is_not_passed_on(cloudflare, listing):
    cloudflare.reply = refused(403, "session+/=")

    with pytest.raises(StoreRefused) as caught:
        await listing(CREDENTIAL, "sales/")
    assert caught.value.error.words == "403"


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"<html/>", b"<ListBucketResult>", b"<!DOCTYPE a [<!ENTITY x 'y'>]><ListBucketResult/>"],
)
async def test_answer_that_is_no_listing_is_not_an_empty_one(cloudflare, listing, body):
    cloudflare.reply = Reply(status=200, body=body)

    with pytest.raises(Unavailable) as caught:
        await listing(CREDENTIAL, "sales/")
    assert read_error(caught.value).failure is Failure.FAILED


async def test_credential_of_another_cloud_is_refused(listing):
    token = GcpOauthToken(oauth_token="t")
    with pytest.raises(Unsupported):
        await listing(Credential(id="1", secret=token, expires_at=NOON), "")
