"""The double of Google Cloud lets in what Google's own libraries make, and nothing beyond the boundary."""

from __future__ import annotations

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
from google.auth import downscoped, impersonated_credentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request
from google.oauth2 import service_account, sts
from obstore.exceptions import BaseError, PermissionDeniedError
from obstore.store import GCSStore

from tests.components import FAKE_GCS_SERVER, GCP_DOUBLE
from tests.doubles.gcp_identity import CLOUD_PLATFORM, ServiceAccount

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
    # The library has the address built in.
    credentials._sts_client = sts.Client(cloud.sts_url)
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
    assert 2390 <= reply["expires_in"] <= 2400
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
    stranger = ServiceAccount(email=gateway.email)
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
