"""The double of Google Cloud lets in what Google's own libraries make, and nothing beyond the boundary."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
import warnings
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import obstore
import pytest
import requests
from google.auth import downscoped, iam, impersonated_credentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request
from google.oauth2 import service_account, sts
from obstore.exceptions import BaseError, PermissionDeniedError
from obstore.store import GCSStore

from tests.components import FAKE_GCS_SERVER, GCP_DOUBLE
from tests.doubles.gcp_identity import CLOUD_PLATFORM, ServiceAccount
from tests.doubles.gcp_signed_url import BadUrl, read_signed_url
from tests.doubles.rsa_keys import foreign_rsa_key

with warnings.catch_warnings():
    # The library recommends a package that only its other transport uses.
    warnings.simplefilter("ignore", ImportWarning)
    from google.api_core.exceptions import Forbidden
    from google.cloud import storage

pytestmark = [pytest.mark.system, pytest.mark.component(GCP_DOUBLE, FAKE_GCS_SERVER)]

BUCKET = "lake"
KEYS = ("tables/a/p", "tables/a/sub/p", "tables/ab/p", "tables/b/p", "p")
VIEWER = "roles/storage.objectViewer"


@pytest.fixture
def cloud(gcp):
    gcp.storage.make_bucket(BUCKET)
    for key in KEYS:
        gcp.storage.put(BUCKET, key)
    return gcp


@pytest.fixture
def gateway(cloud):
    return cloud.identity.register(
        ServiceAccount(email="gateway@test.iam.gserviceaccount.com", roles={BUCKET: (VIEWER,)})
    )


@pytest.fixture
def session():
    with requests.Session() as session:
        yield session


@pytest.fixture
def source(cloud, gateway):
    return service_account.Credentials.from_service_account_info(
        cloud.identity.key_file(gateway), scopes=[CLOUD_PLATFORM]
    )


def condition(path="tables/a/"):
    return (
        f"resource.name.startsWith('projects/_/buckets/{BUCKET}/objects/{path}')"
        f" || api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('{path}')"
    )


def narrowed(cloud, source, expression=None, permissions=(f"inRole:{VIEWER}",)):
    rule = downscoped.AccessBoundaryRule(
        available_resource=f"//storage.googleapis.com/projects/_/buckets/{BUCKET}",
        available_permissions=list(permissions),
        availability_condition=downscoped.AvailabilityCondition(expression or condition()),
    )
    credentials = downscoped.Credentials(source, downscoped.CredentialAccessBoundary([rule]))
    credentials._sts_client = sts.Client(cloud.sts_url)  # noqa: SLF001 -- the library has the address built in
    return credentials


def bucket_of(cloud, credentials):
    client = storage.Client(
        project="test", credentials=credentials, client_options={"api_endpoint": cloud.origin}
    )
    return client.bucket(BUCKET)


def token_of(credentials, session):
    credentials.refresh(Request(session))
    return credentials.token


def ask(cloud, path, token, method="GET"):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{cloud.origin}{path}", method=method, headers=headers)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


def exchange(cloud, boundary=None, **changes):
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{BUCKET}",
        "availablePermissions": [f"inRole:{VIEWER}"],
        "availabilityCondition": {"expression": condition()},
    }
    boundary = boundary or {"accessBoundary": {"accessBoundaryRules": [rule]}}
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "options": quote(json.dumps(boundary)),
    }
    form = {name: value for name, value in (form | changes).items() if value is not None}
    request = urllib.request.Request(cloud.sts_url, urlencode(form).encode(), method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, json.load(exc)


def test_a_downscoped_token_reads_and_lists_inside_and_is_refused_outside(cloud, source):
    bucket = bucket_of(cloud, narrowed(cloud, source))
    assert bucket.blob("tables/a/p").download_as_bytes() == b"content"
    assert bucket.blob("tables/a/sub/p").download_as_bytes() == b"content"
    assert {blob.name for blob in bucket.list_blobs(prefix="tables/a/")} == set(KEYS[:2])
    for key in ("tables/ab/p", "tables/b/p", "p"):
        with pytest.raises(Forbidden):
            bucket.blob(key).download_as_bytes()
    for prefix in (None, "", "tables/", "tables/a", "tables/ab/"):
        with pytest.raises(Forbidden):
            list(bucket.list_blobs(prefix=prefix))
    with pytest.raises(Forbidden):
        bucket.blob("tables/a/new").upload_from_string(b"x")
    with pytest.raises(Forbidden):
        bucket.blob("tables/a/p").delete()
    bucket.client.close()


def test_the_token_before_the_exchange_opens_all_that_its_roles_do(cloud, source):
    bucket = bucket_of(cloud, source)
    assert bucket.blob("tables/b/p").download_as_bytes() == b"content"
    with pytest.raises(Forbidden):
        bucket.blob("tables/a/new").upload_from_string(b"x")
    bucket.client.close()


def test_a_boundary_gives_nothing_that_the_identity_has_not(cloud, source, session):
    token = token_of(narrowed(cloud, source, permissions=["inRole:roles/storage.objectAdmin"]), session)
    assert ask(cloud, f"/storage/v1/b/{BUCKET}/o/tables%2Fa%2Fp", token) == 200
    assert ask(cloud, f"/storage/v1/b/{BUCKET}/o/tables%2Fa%2Fp", token, "DELETE") == 403


def test_writing_works_where_identity_and_boundary_both_allow_it(cloud, session):
    writer = cloud.identity.register(
        ServiceAccount(
            email="writer@test.iam.gserviceaccount.com", roles={BUCKET: ("roles/storage.objectAdmin",)}
        )
    )
    source = service_account.Credentials.from_service_account_info(
        cloud.identity.key_file(writer), scopes=[CLOUD_PLATFORM]
    )
    bucket = bucket_of(cloud, narrowed(cloud, source, permissions=["inRole:roles/storage.objectUser"]))
    bucket.blob("tables/a/new").upload_from_string(b"x")
    assert bucket.blob("tables/a/new").download_as_bytes() == b"x"
    bucket.blob("tables/a/new").delete()
    with pytest.raises(Forbidden):
        bucket.blob("tables/b/new").upload_from_string(b"x")
    bucket.client.close()


def test_the_xml_api_is_held_to_the_same_boundary(cloud, source, session):
    token = token_of(narrowed(cloud, source), session)

    def provider() -> Any:
        return {"token": token, "expires_at": None}

    store = GCSStore(
        BUCKET,
        config={"base_url": cloud.origin},
        client_options={"allow_http": True},
        credential_provider=provider,
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
    )
    assert bytes(obstore.get(store, "tables/a/p").bytes()) == b"content"
    assert obstore.head(store, "tables/a/p")["size"] == len(b"content")
    assert [meta["path"] for meta in obstore.list(store, "tables/a").collect()] == list(KEYS[:2])
    for key in ("tables/ab/p", "tables/b/p", "p"):
        with pytest.raises(PermissionDeniedError):
            obstore.get(store, key)
    for prefix in (None, "tables", "tables/ab"):
        with pytest.raises(BaseError, match="403"):
            obstore.list(store, prefix).collect()
    with pytest.raises(PermissionDeniedError):
        obstore.put(store, "tables/a/new", b"x", use_multipart=False)
    with pytest.raises(PermissionDeniedError):
        obstore.delete(store, "tables/a/p")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/storage/v1/b/lake/o/tables%2Fa%2Fp", 200),
        ("/download/storage/v1/b/lake/o/tables%2Fa%2Fp?alt=media", 200),
        ("/storage/v1/b/lake/o?prefix=tables%2Fa%2F&delimiter=%2F", 200),
        ("/lake/tables/a/p", 200),
        ("/lake?list-type=2&prefix=tables/a/", 200),
        ("/storage/v1/b/lake", 403),
        ("/storage/v1/b/lake/o/tables%2Fab%2Fp", 403),
        ("/storage/v1/b/other/o/tables%2Fa%2Fp", 403),
        ("/storage/v1/b/lake/o?prefix=tables%2Fa%2F&prefix=tables%2Fb%2F", 400),
        ("/storage/v1/b/lake/o?matchGlob=**&prefix=tables%2Fa%2F", 400),
        ("/storage/v1/b/lake/o/tables/b/p", 400),
        ("/storage/v1/b/lake/o/tables%2Fa%2F..%2Fb%2Fp", 400),
        ("/storage/v1/b/lake/o/tables%2Fa%2Fp?userProject=x", 400),
        ("/storage/v1/b/lake/o/tables%2Fa%2Fp/acl", 400),
        ("/storage/v1/b/lake/iam", 400),
        ("/storage/v1/b", 400),
        ("/batch/storage/v1", 400),
        ("/lake/tables/ab/p", 403),
        ("/lake/tables%2Fb%2Fp", 403),
        ("/lake/tables/a/../b/p", 400),
        ("/lake?list-type=2&prefix=tables/", 403),
        ("/lake?list-type=2", 403),
        ("/lake?acl", 400),
        ("/lake/tables/a/p?acl", 400),
        # Folders have names of their own kind, which this condition does not open.
        ("/storage/v1/b/lake/folders/tables%2Fa%2F", 403),
        ("/storage/v1/b/lake/managedFolders/tables%2Fa%2F", 403),
    ],
)
def test_requests_are_read_as_the_store_reads_them(cloud, source, session, path, status):
    assert ask(cloud, path, token_of(narrowed(cloud, source), session)) == status


@pytest.mark.parametrize("collection", ["folders", "managedFolders"])
def test_folders_are_opened_by_conditions_on_their_own_names(cloud, source, session, collection):
    expression = f"resource.name.startsWith('projects/_/buckets/lake/{collection}/tables/a/')"
    token = token_of(narrowed(cloud, source, expression), session)
    for name, status in (
        ("tables%2Fa%2F", 404),
        ("tables%2Fa%2Fsub%2F", 404),
        ("tables%2Fab%2F", 403),
        ("tables%2F", 403),
    ):
        assert ask(cloud, f"/storage/v1/b/lake/{collection}/{name}", token) == status


def test_a_condition_can_ask_for_the_type(cloud, source, session):
    token = token_of(narrowed(cloud, source, "resource.type == 'storage.googleapis.com/Object'"), session)
    assert ask(cloud, "/lake/tables/b/p", token) == 200
    assert ask(cloud, "/lake?list-type=2&prefix=tables/", token) == 403


def test_only_a_listing_has_a_prefix_to_ask_for(cloud, source, session):
    expression = "api.getAttribute('storage.googleapis.com/objectListPrefix', 'none') == 'none'"
    token = token_of(narrowed(cloud, source, expression), session)
    assert ask(cloud, "/lake/tables/b/p", token) == 200
    assert ask(cloud, "/lake?list-type=2", token) == 403


@pytest.mark.parametrize("name", ["it's", 'say "x"', "back\\slash", "ä", "%41", "a b", "x') || ('1'=='1"])
def test_escaped_names_are_read_as_they_are(cloud, source, session, name):
    cloud.storage.put(BUCKET, f"{name}/p")
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    token = token_of(narrowed(cloud, source, condition(f"{escaped}/")), session)
    assert ask(cloud, f"/storage/v1/b/lake/o/{quote(f'{name}/p', safe='')}", token) == 200
    assert ask(cloud, "/lake/tables/b/p", token) == 403


def test_a_percent_sign_that_was_encoded_only_once_becomes_another_name(cloud, source, session):
    source.refresh(Request(session))
    rule = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{BUCKET}",
        "availablePermissions": [f"inRole:{VIEWER}"],
        "availabilityCondition": {"expression": condition("%74ables/b/")},
    }
    plain = json.dumps({"accessBoundary": {"accessBoundaryRules": [rule]}})
    status, reply = exchange(cloud, subject_token=source.token, options=plain)
    assert status == 200
    assert ask(cloud, "/lake/tables/b/p", reply["access_token"]) == 200


RULE = {
    "availableResource": f"//storage.googleapis.com/projects/_/buckets/{BUCKET}",
    "availablePermissions": [f"inRole:{VIEWER}"],
}


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [RULE] * 11,
        [RULE | {"availableResource": "//storage.googleapis.com/projects/_/buckets/lake/objects/x"}],
        [RULE | {"availableResource": "//storage.googleapis.com/projects/test/buckets/lake"}],
        [RULE | {"availableResource": "projects/_/buckets/lake"}],
        [RULE | {"availablePermissions": ["storage.objects.get"]}],
        [RULE | {"availablePermissions": ["inRole:roles/owner"]}],
        [RULE | {"availablePermissions": []}],
        [RULE | {"condition": {"expression": "true"}}],
        *(
            [RULE | {"availabilityCondition": {"expression": expression}}]
            for expression in (
                "resource.name.matches('.*')",
                "resource.name.startsWith('a'",
                "resource.name.contains('a')",
                "request.time < timestamp('2030-01-01T00:00:00Z')",
                "size(resource.name) > 1",
                "resource.name.startsWith('a\nb')",
                "resource.name.startsWith('a\\qb')",
                "[1].exists(x, true)",
                "",
            )
        ),
    ],
)
def test_a_boundary_that_google_would_not_take_is_refused(cloud, source, session, rules):
    source.refresh(Request(session))
    boundary = {"accessBoundary": {"accessBoundaryRules": rules}}
    assert exchange(cloud, boundary, subject_token=source.token)[0] == 400
    assert cloud.identity.exchanges == 0


@pytest.mark.parametrize(
    "change",
    [
        {"grant_type": "client_credentials"},
        {"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"},
        {"requested_token_type": "urn:ietf:params:oauth:token-type:jwt"},
        {"subject_token": "ya29.garbage"},
        {"subject_token": None},
        {"audience": "x"},
        {"options": "not json"},
    ],
)
def test_an_exchange_of_another_form_is_refused(cloud, source, session, change):
    source.refresh(Request(session))
    assert exchange(cloud, subject_token=source.token)[0] == 200
    assert exchange(cloud, **({"subject_token": source.token} | change))[0] == 400


def test_a_downscoped_token_is_not_exchanged_again_and_ends_with_its_source(cloud, source, session):
    source.refresh(Request(session))
    cloud.clock.offset = timedelta(minutes=20)
    _, reply = exchange(cloud, subject_token=source.token)
    assert 2340 <= reply["expires_in"] <= 2400
    assert exchange(cloud, subject_token=reply["access_token"])[0] == 400
    assert ask(cloud, "/lake/tables/a/p", reply["access_token"]) == 200
    cloud.clock.offset = timedelta(minutes=61)
    assert ask(cloud, "/lake/tables/a/p", reply["access_token"]) == 401
    assert exchange(cloud, subject_token=source.token)[0] == 400


def test_the_reply_can_leave_the_expiry_out(cloud, source, session):
    cloud.identity.tells_expiry = False
    source.refresh(Request(session))
    assert "expires_in" not in exchange(cloud, subject_token=source.token)[1]


@pytest.mark.parametrize("token", [None, "garbage", "ya29.garbage"])
def test_without_a_token_nothing_is_opened(cloud, gateway, token):
    for path in ("/lake/tables/a/p", "/storage/v1/b/lake/o?prefix=tables%2Fa%2F"):
        assert ask(cloud, path, token) == 401


def test_an_assertion_by_another_key_gets_no_token(cloud, gateway, session):
    stranger = ServiceAccount(email=gateway.email, key=foreign_rsa_key())
    forged = service_account.Credentials.from_service_account_info(
        cloud.identity.key_file(stranger), scopes=[CLOUD_PLATFORM]
    )
    with pytest.raises(GoogleAuthError, match="invalid_grant"):
        forged.refresh(Request(session))


def test_a_token_without_the_scope_of_the_platform_is_not_exchanged(cloud, gateway, session):
    narrow = service_account.Credentials.from_service_account_info(
        cloud.identity.key_file(gateway), scopes=["https://www.googleapis.com/auth/devstorage.read_only"]
    )
    narrow.refresh(Request(session))
    assert ask(cloud, "/lake/tables/a/p", narrow.token) == 200
    assert exchange(cloud, subject_token=narrow.token)[0] == 400


def test_impersonation_needs_the_role(cloud, source, gateway, session):
    target = cloud.identity.register(
        ServiceAccount(email="reader@test.iam.gserviceaccount.com", roles={BUCKET: (VIEWER,)})
    )

    def impersonate(credentials):
        return impersonated_credentials.Credentials(
            credentials,
            target.email,
            [CLOUD_PLATFORM],
            lifetime=900,
            iam_endpoint_override=cloud.iam_url(target.email),
        )

    with pytest.raises(GoogleAuthError):
        impersonate(source).refresh(Request(session))
    allowed = cloud.identity.register(
        ServiceAccount(email="minter@test.iam.gserviceaccount.com", may_impersonate=(target.email,))
    )
    minter = service_account.Credentials.from_service_account_info(
        cloud.identity.key_file(allowed), scopes=[CLOUD_PLATFORM]
    )
    token = token_of(narrowed(cloud, impersonate(minter)), session)
    assert ask(cloud, "/lake/tables/a/p", token) == 200
    assert ask(cloud, "/lake/tables/b/p", token) == 403
    assert ask(cloud, "/lake/tables/a/p", token_of(minter, session)) == 403


def test_faults_are_answered_once(cloud, source, session):
    cloud.identity.faults.add(429, "3")
    assert ask_token(cloud) == 429
    source.refresh(Request(session))
    assert exchange(cloud, subject_token=source.token)[0] == 200


def ask_token(cloud):
    request = urllib.request.Request(f"{cloud.origin}/token", b"x=1", method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    with caught.value:
        return caught.value.code


def signed_url(cloud, source, key="tables/a/p", life=timedelta(hours=1), **changes):
    """Sign with Google's own library."""
    blob = bucket_of(cloud, source).blob(key)
    return blob.generate_signed_url(
        version="v4", expiration=life, api_access_endpoint=cloud.origin, **changes
    )


def fetch(url, method="GET", headers=None):
    request = urllib.request.Request(url, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.read()


@pytest.mark.parametrize("name", ["p", "x=1/a b+c", "%41", "50%", "é/日本", "a&b;c,d", "it's (1)!", "#?~"])
def test_a_url_that_googles_library_signed_serves_its_object(cloud, source, name):
    cloud.storage.put(BUCKET, f"urls/{name}", name.encode())
    assert fetch(signed_url(cloud, source, f"urls/{name}")) == (200, name.encode())


def test_a_signed_url_serves_ranges(cloud, source):
    cloud.storage.put(BUCKET, "urls/digits", b"0123456789")
    url = signed_url(cloud, source, "urls/digits")
    assert fetch(url, headers={"Range": "bytes=2-5"}) == (206, b"2345")


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("/tables/a/p?", "/tables/b/p?", 403),
        ("/tables/a/p?", "/tables/%61/p?", 403),
        ("/tables/a/p?", "/tables/a//p?", 403),
        ("Expires=3600", "Expires=3601", 403),
        ("Expires=3600", "Expires=604801", 400),
        ("Expires=3600", "Expires=0", 400),
        ("Expires=3600", "Expires=-1", 400),
        ("Expires=3600", "Expires=1h", 400),
        ("GOOG4-RSA", "GOOG4-HMAC", 403),
        ("gateway%40", "nobody%40", 403),
        ("%2Fauto%2F", "%2Feu%2F", 400),
        ("SignedHeaders=host", "SignedHeaders=", 400),
        ("SignedHeaders=host", "SignedHeaders=host%3Brange", 400),
        ("&X-Goog-SignedHeaders=host", "", 400),
        ("&X-Goog-Signature=", "&x=", 400),
        ("&X-Goog-Signature=", "&generation=1&X-Goog-Signature=", 400),
        ("&X-Goog-Signature=", "&X-Goog-Signature=00", 403),
        ("&X-Goog-Signature=", "&X-Goog-Signature=zz", 403),
        ("X-Goog-Date=2", "X-Goog-Date=3", 400),
    ],
)
def test_a_signed_url_that_was_tampered_with_is_refused(cloud, source, old, new, status):
    url = signed_url(cloud, source)
    assert old in url
    assert fetch(url)[0] == 200
    found, body = fetch(url.replace(old, new))
    assert found == status
    assert b"content" not in body


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "HEAD"])
def test_a_signed_url_serves_its_own_method_only(cloud, source, method):
    assert fetch(signed_url(cloud, source), method)[0] == 403


def test_a_signed_url_is_not_taken_together_with_a_token(cloud, source, session):
    headers = {"Authorization": f"Bearer {token_of(source, session)}"}
    assert fetch(signed_url(cloud, source), headers=headers)[0] == 400


def test_a_signed_url_ends_by_the_clouds_clock(cloud, source):
    url = signed_url(cloud, source)
    cloud.clock.offset = timedelta(minutes=59)
    assert fetch(url)[0] == 200
    cloud.clock.offset = timedelta(minutes=61)
    status, body = fetch(url)
    assert (status, b"ExpiredToken" in body) == (400, True)
    cloud.clock.offset = -timedelta(minutes=14)
    assert fetch(url)[0] == 200
    cloud.clock.offset = -timedelta(minutes=16)
    assert fetch(url)[0] == 403


def test_a_signed_url_needs_the_signers_own_key_and_rights(cloud, gateway, source):
    stranger = service_account.Credentials.from_service_account_info(
        cloud.identity.key_file(ServiceAccount(email=gateway.email))
    )
    status, body = fetch(signed_url(cloud, stranger))
    assert (status, b"SignatureDoesNotMatch" in body) == (403, True)
    nobody = cloud.identity.register(ServiceAccount(email="nobody@test.iam.gserviceaccount.com"))
    other = service_account.Credentials.from_service_account_info(cloud.identity.key_file(nobody))
    assert fetch(signed_url(cloud, other))[0] == 403


def test_a_signed_url_may_do_what_it_was_signed_for_if_its_signer_may(cloud):
    admin = cloud.identity.register(
        ServiceAccount(
            email="admin@test.iam.gserviceaccount.com", roles={BUCKET: ("roles/storage.objectAdmin",)}
        )
    )
    key = service_account.Credentials.from_service_account_info(cloud.identity.key_file(admin))
    cloud.storage.put(BUCKET, "urls/deleted", b"content")
    assert fetch(signed_url(cloud, key, "urls/deleted", method="DELETE"), "DELETE")[0] in (200, 204)
    assert fetch(signed_url(cloud, key, "urls/deleted"))[0] == 404


def test_an_hmac_keys_signature_is_the_one_that_openssl_makes():
    query = (
        "X-Goog-Algorithm=GOOG4-HMAC-SHA256"
        "&X-Goog-Credential=GOOG1EXAMPLE%2F20261116%2Fauto%2Fstorage%2Fgoog4_request"
        "&X-Goog-Date=20261116T120000Z&X-Goog-Expires=3600&X-Goog-SignedHeaders=host&X-Goog-Signature="
        "65f829c2592d2c656239c40094154dbdb956e80ab6d117c1ce497c23c13a925c"
    )
    path, headers = "/lake/sales/orders/part-0.parquet", {"Host": "storage.googleapis.com"}
    read_signed_url("GET", path, query, headers).check_secret("secret")
    for method, place, secret in (
        ("PUT", path, "secret"),
        ("GET", "/lake", "secret"),
        ("GET", path, "other"),
    ):
        with pytest.raises(BadUrl):
            read_signed_url(method, place, query, headers).check_secret(secret)


@pytest.fixture
def signer(cloud):
    """An account that Google signs as, and the credentials of one that may ask for it."""
    sharer = cloud.identity.register(
        ServiceAccount(email="sharer@test.iam.gserviceaccount.com", roles={BUCKET: (VIEWER,)})
    )
    minter = cloud.identity.register(
        ServiceAccount(email="minter@test.iam.gserviceaccount.com", may_impersonate=(sharer.email,))
    )
    return sharer.email, service_account.Credentials.from_service_account_info(
        cloud.identity.key_file(minter), scopes=[CLOUD_PLATFORM]
    )


def test_a_url_that_google_signed_is_believed_until_its_key_is_gone(cloud, signer, session, monkeypatch):
    endpoint = f"{cloud.origin}/v1/projects/-/serviceAccounts/{{}}:signBlob"
    monkeypatch.setattr(iam, "_IAM_SIGN_ENDPOINT", endpoint)
    email, minter = signer
    blobs = iam.Signer(Request(session), minter, email)
    url = signed_url(cloud, service_account.Credentials(blobs, email, ""), life=timedelta(days=1))
    assert fetch(url)[0] == 200
    assert cloud.blobs.requests == [1]
    cloud.blobs.rotate(email)
    cloud.clock.offset = timedelta(hours=11)
    assert fetch(url)[0] == 200
    cloud.clock.offset = timedelta(hours=13)
    assert fetch(url)[0] == 403


def ask_batch(cloud, token, blobs, email):
    """Send a batch as Google's documentation writes it."""
    parts = []
    for number, blob in enumerate(blobs):
        body = json.dumps({"payload": base64.b64encode(blob).decode()})
        parts.append(
            f"--x\r\nContent-Type: application/http\r\nContent-ID: <{number}>\r\n\r\n"
            f"POST /v1/projects/-/serviceAccounts/{email}:signBlob HTTP/1.1\r\n"
            f"Content-Type: application/json\r\n\r\n{body}\r\n"
        )
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "multipart/mixed; boundary=x"}
    text = "".join(parts) + "--x--\r\n"
    request = urllib.request.Request(f"{cloud.origin}/batch", text.encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.read().decode()


def test_a_batch_is_answered_part_by_part(cloud, signer, session):
    email, minter = signer
    token = token_of(minter, session)
    cloud.blobs.spoil = lambda number: 429 if number == 1 else None
    status, text = ask_batch(cloud, token, [b"a", b"b", b"c"], email)
    assert status == 200
    assert text.count("HTTP/1.1 200 OK") == text.count("signedBlob") == 2
    assert text.count("HTTP/1.1 429") == text.count("Retry-After: 7") == 1
    # Backwards: whoever goes by the order is found out.
    assert text.index("<response-2>") < text.index("<response-1>") < text.index("<response-0>")
    assert (cloud.blobs.requests, cloud.blobs.signed) == ([3], [b"a", b"c"])


def test_a_batch_of_more_than_a_hundred_or_where_there_are_none_is_refused(cloud, signer, session):
    email, minter = signer
    token = token_of(minter, session)
    assert ask_batch(cloud, token, [b"a"] * 101, email)[0] == 400
    cloud.blobs.takes_batches = False
    assert ask_batch(cloud, token, [b"a"], email)[0] == 404
    assert cloud.blobs.signed == []


def test_to_sign_as_an_account_needs_its_role(cloud, signer, source, session):
    email, minter = signer
    for token, word in ((token_of(source, session), "403"), ("garbage", "401")):
        status, text = ask_batch(cloud, token, [b"a"], email)
        assert (status, f"HTTP/1.1 {word}" in text) == (200, True)
    assert "HTTP/1.1 403" in ask_batch(cloud, token_of(minter, session), [b"a"], "other@test.example")[1]
    assert cloud.blobs.signed == []
