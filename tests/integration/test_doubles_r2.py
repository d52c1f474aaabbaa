"""The double of R2 takes credentials made as Cloudflare documents them, and none that differ."""

from __future__ import annotations

import base64
import hashlib
import json
import urllib.error
import urllib.request
from datetime import timedelta

import boto3
import jwt
import obstore
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from obstore.exceptions import BaseError
from obstore.store import S3Store

from tests.components import R2_DOUBLE, SEAWEEDFS
from tests.doubles.r2 import ApiToken
from tests.stores.s3 import Keys

pytestmark = pytest.mark.component(R2_DOUBLE, SEAWEEDFS)

BUCKET = "lake-r2"
KEYS = ("tables/a/p", "tables/a/sub/p", "tables/ab/p", "tables/b/p", "p")
PATHS = {"prefixPaths": ["tables/a/"], "objectPaths": ["tables/a"]}


@pytest.fixture
def service(r2):
    r2.store.make_bucket(BUCKET)
    for key in KEYS:
        r2.store.put(BUCKET, key)
    return r2


@pytest.fixture
def parent(service):
    return service.register(ApiToken(permission="object-read-only", buckets=(BUCKET,)))


def claims_of(service, parent, **changes):
    now = int(service.clock().timestamp())
    claims = {
        "bucket": BUCKET,
        "scope": "object-read-only",
        "paths": PATHS,
        "sub": service.account,
        "iss": parent.access_key_id,
        "aud": service.host,
        "iat": now,
        "exp": now + 900,
    }
    return {name: value for name, value in (claims | changes).items() if value is not None}


def local_keys(service, parent, secret=None, algorithm="HS256", **changes):
    signed = jwt.encode(
        claims_of(service, parent, **changes), secret or parent.secret_access_key, algorithm=algorithm
    )
    return keys_of(parent, signed)


def keys_of(parent, signed, mark="jwt/"):
    return Keys(
        access_key_id=parent.access_key_id,
        secret_access_key=hashlib.sha256(signed.encode()).hexdigest(),
        session_token=base64.b64encode(f"{mark}{signed}".encode()).decode(),
    )


def client(service, keys, region="auto"):
    return boto3.client(
        "s3",
        endpoint_url=service.endpoint,
        region_name=region,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        aws_session_token=keys.session_token,
        config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}, signature_version="s3v4"),
    )


def refusal(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response["ResponseMetadata"]["HTTPStatusCode"], caught.value.response["Error"]["Code"]


DENIED = (403, "AccessDenied")
UNAUTHORIZED = (401, "Unauthorized")


@pytest.fixture(params=["local", "api"])
def scoped(request, service, parent):
    """A client with a credential for one path, made in each of the two ways."""
    make = local_keys if request.param == "local" else api_keys
    return client(service, make(service, parent))


def api_keys(service, parent, **changes):
    reply = call_api(service, parent, body_of(parent, **changes))[1]["result"]
    return Keys(
        access_key_id=reply["accessKeyId"],
        secret_access_key=reply["secretAccessKey"],
        session_token=reply["sessionToken"],
    )


def body_of(parent, **changes):
    body = {
        "bucket": BUCKET,
        "parentAccessKeyId": parent.access_key_id,
        "permission": "object-read-only",
        "ttlSeconds": 900,
        "prefixes": ["tables/a/"],
        "objects": ["tables/a"],
    }
    return {name: value for name, value in (body | changes).items() if value is not None}


def call_api(service, parent, body, token=None, account=None):
    request = urllib.request.Request(
        f"{service.api_url}/accounts/{account or service.account}/r2/temp-access-credentials",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {token or parent.value}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, json.load(exc)


def fetch(url):
    try:
        with urllib.request.urlopen(url) as response:
            return response.status
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


def test_a_credential_reads_and_lists_inside_and_is_refused_outside(scoped):
    assert scoped.get_object(Bucket=BUCKET, Key="tables/a/p")["Body"].read() == b"content"
    assert scoped.head_object(Bucket=BUCKET, Key="tables/a/sub/p")["ContentLength"] == len(b"content")
    listed = scoped.list_objects_v2(Bucket=BUCKET, Prefix="tables/a/")
    assert [entry["Key"] for entry in listed["Contents"]] == list(KEYS[:2])
    assert scoped.list_objects(Bucket=BUCKET, Prefix="tables/a/sub/")["Contents"][0]["Key"] == KEYS[1]
    for key in ("tables/ab/p", "tables/b/p", "p"):
        assert refusal(scoped.get_object, Bucket=BUCKET, Key=key) == DENIED
        assert refusal(scoped.head_object, Bucket=BUCKET, Key=key)[0] == 403
    for prefix in ("", "tables/", "tables/a", "tables/ab/"):
        assert refusal(scoped.list_objects_v2, Bucket=BUCKET, Prefix=prefix) == DENIED
        assert refusal(scoped.list_objects, Bucket=BUCKET, Prefix=prefix) == DENIED
    assert refusal(scoped.list_objects_v2, Bucket=BUCKET) == DENIED


def test_obstore_is_held_to_the_path_too(service, parent):
    keys = local_keys(service, parent)
    store = S3Store(
        BUCKET,
        endpoint=service.endpoint,
        region="auto",
        access_key_id=keys.access_key_id,
        secret_access_key=keys.secret_access_key,
        session_token=keys.session_token,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
    )
    assert bytes(obstore.get(store, "tables/a/p").bytes()) == b"content"
    assert [meta["path"] for meta in obstore.list(store, "tables/a").collect()] == list(KEYS[:2])
    for call in (
        lambda: obstore.get(store, "tables/ab/p"),
        lambda: obstore.list(store, "tables").collect(),
        lambda: obstore.put(store, "tables/a/new", b"x", use_multipart=False),
        lambda: obstore.delete(store, "tables/a/p"),
    ):
        with pytest.raises(BaseError, match="403"):
            call()


def test_the_bare_object_is_missing_and_not_forbidden(scoped):
    assert refusal(scoped.head_object, Bucket=BUCKET, Key="tables/a")[0] == 404


def test_a_credential_for_reading_does_not_write_or_manage(scoped):
    key = {"Bucket": BUCKET, "Key": "tables/a/p"}
    assert refusal(scoped.put_object, **key, Body=b"") == DENIED
    assert refusal(scoped.delete_object, **key) == DENIED
    assert refusal(scoped.copy_object, **key, CopySource=f"{BUCKET}/tables/b/p") == DENIED
    assert (
        refusal(scoped.delete_objects, Bucket=BUCKET, Delete={"Objects": [{"Key": "tables/a/p"}]}) == DENIED
    )
    assert refusal(scoped.create_multipart_upload, **key) == DENIED
    assert refusal(scoped.get_bucket_location, Bucket=BUCKET) == DENIED
    assert refusal(scoped.get_bucket_acl, Bucket=BUCKET) == DENIED
    assert refusal(scoped.list_buckets) == DENIED
    assert refusal(scoped.get_object, Bucket="lake", Key="tables/a/p") == DENIED


def test_a_presigned_url_opens_what_its_credential_does(service, parent, scoped):
    inside = scoped.generate_presigned_url(
        "get_object", {"Bucket": BUCKET, "Key": "tables/a/p"}, ExpiresIn=600
    )
    outside = scoped.generate_presigned_url(
        "get_object", {"Bucket": BUCKET, "Key": "tables/b/p"}, ExpiresIn=600
    )
    assert fetch(inside) == 200
    assert fetch(outside) == 403
    assert fetch(inside.replace("tables/a/p", "tables/a/sub/p")) == 403
    assert fetch(inside.replace("X-Amz-Expires=600", "X-Amz-Expires=6000")) == 403
    service.clock.offset = timedelta(seconds=601)
    assert fetch(inside) == 400


def test_actions_narrow_the_scope_and_never_widen_it(service, parent):
    reads = client(service, local_keys(service, parent, actions=["GetObject", "HeadObject"]))
    assert reads.get_object(Bucket=BUCKET, Key="tables/a/p")["Body"].read() == b"content"
    assert refusal(reads.list_objects_v2, Bucket=BUCKET, Prefix="tables/a/") == DENIED
    full = service.register(ApiToken())
    writes = client(service, local_keys(service, full, actions=["GetObject", "PutObject"]))
    assert refusal(writes.put_object, Bucket=BUCKET, Key="tables/a/new", Body=b"") == DENIED
    alone = client(service, local_keys(service, parent, scope=None, actions=["GetObject"]))
    assert alone.get_object(Bucket=BUCKET, Key="tables/a/p")["Body"].read() == b"content"


def test_nothing_exceeds_the_parent(service, parent):
    writer = client(service, local_keys(service, parent, scope="object-read-write"))
    assert refusal(writer.put_object, Bucket=BUCKET, Key="tables/a/new", Body=b"") == DENIED
    elsewhere = client(service, local_keys(service, parent, bucket="lake", paths=None))
    assert refusal(elsewhere.list_objects_v2, Bucket="lake") == DENIED
    full = service.register(ApiToken())
    allowed = client(service, local_keys(service, full, scope="object-read-write"))
    allowed.put_object(Bucket=BUCKET, Key="tables/a/new", Body=b"x")
    assert allowed.get_object(Bucket=BUCKET, Key="tables/a/new")["Body"].read() == b"x"
    allowed.delete_object(Bucket=BUCKET, Key="tables/a/new")
    assert refusal(allowed.put_object, Bucket=BUCKET, Key="tables/b/new", Body=b"") == DENIED
    allowed.put_object(Bucket=BUCKET, Key="tables/a/new", Body=b"x")
    both = {"Objects": [{"Key": "tables/a/new"}, {"Key": "tables/b/p"}]}
    assert refusal(allowed.delete_objects, Bucket=BUCKET, Delete=both) == DENIED
    allowed.delete_objects(Bucket=BUCKET, Delete={"Objects": both["Objects"][:1]})
    assert refusal(allowed.head_object, Bucket=BUCKET, Key="tables/a/new")[0] == 404


def test_a_prefix_without_a_slash_opens_its_neighbours_too(service, parent):
    # As Cloudflare documents it: so that a vendor that forgets the slash is found out.
    loose = client(
        service, local_keys(service, parent, paths={"prefixPaths": ["tables/a"], "objectPaths": []})
    )
    assert loose.get_object(Bucket=BUCKET, Key="tables/ab/p")["Body"].read() == b"content"


def test_without_paths_the_whole_bucket_is_open(service, parent):
    whole = client(service, local_keys(service, parent, paths=None))
    assert whole.list_objects_v2(Bucket=BUCKET)["KeyCount"] >= len(KEYS)
    assert whole.get_object(Bucket=BUCKET, Key="p")["Body"].read() == b"content"


@pytest.mark.parametrize(
    "change",
    [
        {"sub": "another-account"},
        {"sub": None},
        {"aud": "another.r2.cloudflarestorage.com"},
        {"aud": None},
        {"iss": "another-key"},
        {"iss": None},
        {"bucket": None},
        {"bucket": 7},
        {"exp": None},
        {"iat": None},
        {"exp": 4_000_000_000},
        {"iat": 4_000_000_000, "exp": 4_000_000_900},
        {"scope": None},
        {"scope": "object-read"},
        {"actions": []},
        {"actions": ["Everything"]},
        {"actions": "GetObject"},
        {"paths": {}},
        {"paths": {"prefixPaths": [], "objectPaths": []}},
        {"paths": {"prefixPaths": [""]}},
        {"paths": {"prefix": ["tables/a/"]}},
        {"paths": ["tables/a/"]},
        {"prefixes": ["tables/a/"]},
    ],
)
def test_a_token_with_other_claims_is_refused(service, parent, change):
    s3 = client(service, local_keys(service, parent, **change))
    assert refusal(s3.get_object, Bucket=BUCKET, Key="tables/a/p") == UNAUTHORIZED


def test_a_token_that_was_signed_otherwise_is_refused(service, parent):
    good = jwt.encode(claims_of(service, parent), parent.secret_access_key, algorithm="HS256")
    unsigned = jwt.encode(claims_of(service, parent), "", algorithm="none")
    for keys in (
        local_keys(service, parent, secret="x" * 64),
        local_keys(service, parent, algorithm="HS512"),
        keys_of(parent, unsigned),
        keys_of(parent, good, mark=""),
        keys_of(parent, good + "x"),
    ):
        assert refusal(client(service, keys).get_object, Bucket=BUCKET, Key="tables/a/p") == UNAUTHORIZED


def test_a_request_that_was_signed_otherwise_is_refused(service, parent):
    keys = local_keys(service, parent)
    wrong = Keys(
        access_key_id=keys.access_key_id, secret_access_key="x" * 64, session_token=keys.session_token
    )
    s3 = client(service, wrong)
    assert refusal(s3.get_object, Bucket=BUCKET, Key="tables/a/p") == (403, "SignatureDoesNotMatch")
    without = Keys(access_key_id=keys.access_key_id, secret_access_key=keys.secret_access_key)
    s3 = client(service, without)
    assert refusal(s3.get_object, Bucket=BUCKET, Key="tables/a/p") == (403, "SignatureDoesNotMatch")
    s3 = client(service, keys, region="eu-central-1")
    assert refusal(s3.get_object, Bucket=BUCKET, Key="tables/a/p") == UNAUTHORIZED
    assert fetch(f"{service.endpoint}/{BUCKET}/tables/a/p") == 401


@pytest.mark.parametrize("key", ["tables/a/ä b+c", "tables/a/%41", "tables/a/x=1/p"])
def test_names_with_other_characters_are_signed_right(service, scoped, key):
    service.store.put(BUCKET, key)
    assert scoped.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"content"


def test_names_that_climb_are_refused(scoped):
    for key in ("tables/a/../b/p", "tables/a//p", "tables/a/./p"):
        status, _ = refusal(scoped.get_object, Bucket=BUCKET, Key=key)
        assert status in (400, 403)


@pytest.mark.parametrize("by_api", [False, True])
def test_a_credential_ends_with_its_time(service, parent, by_api):
    # Shorter than the 15 minutes that a signature may be late, so that it is the credential that ends.
    now = int(service.clock().timestamp())
    keys = local_keys(service, parent, exp=now + 600)
    if by_api:
        keys = api_keys(service, parent, ttlSeconds=600)
    s3 = client(service, keys)
    service.clock.offset = timedelta(minutes=9)
    assert s3.head_object(Bucket=BUCKET, Key="tables/a/p")
    service.clock.offset = timedelta(minutes=10, seconds=1)
    assert refusal(s3.get_object, Bucket=BUCKET, Key="tables/a/p") == UNAUTHORIZED


def test_a_request_that_was_signed_long_ago_is_refused(service, parent):
    s3 = client(service, local_keys(service, parent, exp=int(service.clock().timestamp()) + 86_400))
    service.clock.offset = timedelta(minutes=14)
    assert s3.head_object(Bucket=BUCKET, Key="tables/a/p")
    service.clock.offset = timedelta(minutes=16)
    assert refusal(s3.get_object, Bucket=BUCKET, Key="tables/a/p") == (403, "RequestTimeTooSkewed")


def test_deleting_the_parent_ends_its_children_at_once(service, parent, scoped):
    assert scoped.head_object(Bucket=BUCKET, Key="tables/a/p")
    service.delete_token(parent)
    assert refusal(scoped.get_object, Bucket=BUCKET, Key="tables/a/p") == UNAUTHORIZED


def test_the_parents_own_keys_read_what_it_may(service, parent):
    s3 = client(service, parent.keys)
    assert s3.get_object(Bucket=BUCKET, Key="tables/b/p")["Body"].read() == b"content"
    assert refusal(s3.put_object, Bucket=BUCKET, Key="x", Body=b"") == DENIED
    assert refusal(s3.list_objects_v2, Bucket="lake") == DENIED


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"ttlSeconds": 604_801}, 400),
        ({"ttlSeconds": 0}, 400),
        ({"ttlSeconds": "900"}, 400),
        ({"ttlSeconds": None}, 400),
        ({"permission": "read"}, 400),
        ({"permission": None}, 400),
        ({"bucket": None}, 400),
        ({"prefixes": "tables/a/"}, 400),
        ({"prefixes": [""]}, 400),
        ({"prefixes": [], "objects": []}, 400),
        ({"actions": ["GetObject"]}, 400),
        ({"parentAccessKeyId": "another"}, 403),
        ({"permission": "object-read-write"}, 403),
        ({"bucket": "lake"}, 403),
    ],
)
def test_the_api_refuses_what_it_does_not_document(service, parent, change, status):
    answer, reply = call_api(service, parent, body_of(parent, **change))
    assert answer == status
    assert reply["success"] is False
    assert service.issued_by_api == 0


def test_the_api_wants_a_token_of_the_account(service, parent):
    assert call_api(service, parent, body_of(parent), token="another")[0] == 403
    assert call_api(service, parent, body_of(parent), account="another")[0] == 403
    assert call_api(service, parent, body_of(parent))[0] == 200
    service.delete_token(parent)
    assert call_api(service, parent, body_of(parent))[0] == 403
