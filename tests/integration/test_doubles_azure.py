"""The double of Azure lets in what Microsoft's own SDK makes, and nothing that differs from it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import urllib.error
import urllib.request
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from ssl import create_default_context
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

import obstore
import pytest
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.identity import ClientSecretCredential, ManagedIdentityCredential, WorkloadIdentityCredential
from azure.storage.blob import (
    BlobServiceClient,
    ContainerClient,
    generate_blob_sas,
    generate_container_sas,
)
from obstore.exceptions import BaseError
from obstore.store import AzureStore

from tests.components import AZURE_DOUBLE, AZURITE
from tests.doubles.azure import running_azure
from tests.doubles.azure_oauth import FederatedIssuer, Principal
from tests.doubles.server import Clock, serving

pytestmark = [pytest.mark.system, pytest.mark.component(AZURE_DOUBLE, AZURITE)]

CONTAINER = "lake"
PATHS = ("tables/a/p", "tables/a/sub/p", "tables/a/_delta_log/0.json", "tables/ab/p", "tables/b/p", "p")


@pytest.fixture
def account(azure):
    azure.make_container(CONTAINER)
    for path in PATHS:
        azure.put(CONTAINER, path)
    return azure


@pytest.fixture
def gateway(account):
    return account.login.register(Principal(secret="its-secret"))


@pytest.fixture
def closing():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def key(account, gateway, closing):
    return delegation_key(account, secret_credential(account, gateway, closing), closing)


def secret_credential(account, principal, closing, secret="its-secret"):
    credential = ClientSecretCredential(
        account.login.tenant, principal.client_id, secret, **identity_options(account)
    )
    return closing.enter_context(credential)


def identity_options(account):
    return {
        "authority": account.login.origin,
        "disable_instance_discovery": True,
        "connection_verify": str(account.ca),
        "retry_total": 0,
    }


def client_options(account):
    return {"connection_verify": str(account.ca), "retry_total": 0}


def delegation_key(account, credential, closing, start=None, expiry=None):
    service = BlobServiceClient(account.endpoint, credential=credential, **client_options(account))
    closing.enter_context(service)
    now = account.clock()
    return service.get_user_delegation_key(
        start or now - timedelta(minutes=5), expiry or now + timedelta(hours=1)
    )


def directory_sas(account, key, path="tables/a", permission="rl", **changes):
    now = account.clock()
    values = {
        "permission": permission,
        "start": now - timedelta(minutes=5),
        "expiry": now + timedelta(minutes=30),
        "protocol": "https",
        "is_directory": True,
    }
    return generate_blob_sas(account.name, CONTAINER, path, user_delegation_key=key, **(values | changes))


def container_client(account, closing, credential):
    container = ContainerClient(account.endpoint, CONTAINER, credential=credential, **client_options(account))
    return closing.enter_context(container)


def refusal(call, *arguments, **named):
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **named)
    assert caught.value.status_code == 403
    # Only the SDK of storage puts it there.
    return vars(caught.value)["error_code"]


def send(account, path, sas, method="GET"):
    url = f"{account.endpoint}/{path}{'&' if '?' in path else '?'}{sas}"
    context = create_default_context(cafile=account.ca)
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), context=context) as response:
            return response.status, ""
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.headers["x-ms-error-code"]


def test_a_directory_sas_reads_and_lists_inside_and_is_refused_outside(account, key, closing):
    lake = container_client(account, closing, directory_sas(account, key))
    assert lake.download_blob("tables/a/p").readall() == b"content"
    assert lake.download_blob("tables/a/sub/p").readall() == b"content"
    assert lake.get_blob_client("tables/a/p").get_blob_properties().size == len(b"content")
    assert {blob.name for blob in lake.list_blobs(name_starts_with="tables/a/")} == set(PATHS[:3])
    assert {blob.name for blob in lake.list_blobs(name_starts_with="tables/a/sub/")} == {"tables/a/sub/p"}
    for path in ("tables/ab/p", "tables/b/p", "p"):
        assert refusal(lake.download_blob, path) == "AuthenticationFailed"
    for prefix in (None, "", "t", "tables/", "tables/a", "tables/ab/", "tables/b/"):
        assert refusal(list, lake.list_blobs(name_starts_with=prefix)) == "AuthenticationFailed"


def test_a_directory_sas_for_reading_does_not_write_or_delete(account, key, closing):
    lake = container_client(account, closing, directory_sas(account, key))
    assert refusal(lake.upload_blob, "tables/a/new", b"") == "AuthorizationPermissionMismatch"
    assert refusal(lake.delete_blob, "tables/a/p") == "AuthorizationPermissionMismatch"
    assert refusal(lake.delete_blob, "tables/b/p") == "AuthenticationFailed"
    assert refusal(lake.get_container_properties) == "AuthorizationFailure"


def test_permissions_of_a_sas_are_held_apart(account, key, closing):
    reads = container_client(account, closing, directory_sas(account, key, permission="r"))
    assert reads.download_blob("tables/a/p").readall() == b"content"
    assert refusal(list, reads.list_blobs(name_starts_with="tables/a/")) == "AuthorizationPermissionMismatch"
    lists = container_client(account, closing, directory_sas(account, key, permission="l"))
    assert len(list(lists.list_blobs(name_starts_with="tables/a/"))) == 3
    assert refusal(lists.download_blob, "tables/a/p") == "AuthorizationPermissionMismatch"


def test_a_sas_writes_only_what_its_maker_may_write(account, gateway, key, closing):
    sas = directory_sas(account, key, permission="rcwdl")
    lake = container_client(account, closing, sas)
    assert refusal(lake.upload_blob, "tables/a/new", b"") == "AuthorizationPermissionMismatch"
    writer = account.login.register(Principal(secret="its-secret", may_write=True))
    own = delegation_key(account, secret_credential(account, writer, closing), closing)
    lake = container_client(account, closing, directory_sas(account, own, permission="rcwdl"))
    lake.upload_blob("tables/a/new", b"x")
    assert lake.download_blob("tables/a/new").readall() == b"x"
    lake.delete_blob("tables/a/new")
    assert refusal(lake.upload_blob, "tables/b/new", b"") == "AuthenticationFailed"


def test_a_container_sas_opens_the_container_and_a_blob_sas_one_blob(account, key, closing):
    times = {"expiry": account.clock() + timedelta(minutes=30), "user_delegation_key": key}
    sas = generate_container_sas(account.name, CONTAINER, permission="rl", **times)
    lake = container_client(account, closing, sas)
    assert lake.download_blob("tables/b/p").readall() == b"content"
    assert set(PATHS) <= {blob.name for blob in lake.list_blobs()}
    sas = generate_blob_sas(account.name, CONTAINER, "tables/a/p", permission="r", **times)
    lake = container_client(account, closing, sas)
    assert lake.download_blob("tables/a/p").readall() == b"content"
    assert refusal(lake.download_blob, "tables/a/sub/p") == "AuthenticationFailed"
    assert refusal(list, lake.list_blobs()) == "AuthenticationFailed"


def own_sas(account, path="tables/a/p", key=None, **changes):
    now = account.clock()
    values = {
        "permission": "r",
        "start": now - timedelta(minutes=5),
        "expiry": now + timedelta(minutes=30),
        "protocol": "https",
    }
    text = base64.b64encode(key or account.own_key).decode()
    return generate_blob_sas(account.name, CONTAINER, path, account_key=text, **(values | changes))


def test_a_blob_sas_of_the_accounts_own_key_opens_one_blob(account, closing):
    lake = container_client(account, closing, own_sas(account))
    assert lake.download_blob("tables/a/p").readall() == b"content"
    assert refusal(lake.download_blob, "tables/a/sub/p") == "AuthenticationFailed"
    assert refusal(lake.delete_blob, "tables/a/p") == "AuthorizationPermissionMismatch"
    assert refusal(list, lake.list_blobs()) == "AuthenticationFailed"
    writes = container_client(account, closing, own_sas(account, "own/new", permission="cw"))
    writes.upload_blob("own/new", b"x", overwrite=True)


def test_a_container_sas_of_the_accounts_own_key_opens_the_container(account, closing):
    text = base64.b64encode(account.own_key).decode()
    expiry = account.clock() + timedelta(minutes=30)
    sas = generate_container_sas(account.name, CONTAINER, account_key=text, permission="rl", expiry=expiry)
    lake = container_client(account, closing, sas)
    assert lake.download_blob("tables/b/p").readall() == b"content"
    assert set(PATHS) <= {blob.name for blob in lake.list_blobs()}


@pytest.mark.parametrize("version", ["2018-11-09", "2020-02-10", "2020-12-06", "2023-11-03", "2026-10-06"])
def test_a_signature_of_the_accounts_own_key_is_as_documented(account, version):
    # Written out here once more, from the documentation's lists of fields.
    expiry = (account.clock() + timedelta(minutes=9)).strftime("%Y-%m-%dT%H:%M:%SZ")
    signed = [
        *("r", "", expiry, f"/blob/{account.name}/{CONTAINER}/tables/a/p"),
        *("", "", "https", version, "b", ""),
        *([""] if version >= "2020-12-06" else []),
        *("", "", "", "", ""),
    ]
    digest = hmac.new(account.own_key, "\n".join(signed).encode(), hashlib.sha256).digest()
    parameters = {"sv": version, "sr": "b", "sp": "r", "se": expiry, "spr": "https"}
    parameters["sig"] = base64.b64encode(digest).decode()
    assert send(account, f"{CONTAINER}/tables/a/p", urlencode(parameters)) == (200, "")
    assert send(account, f"{CONTAINER}/tables/a/p", urlencode(parameters | {"sp": "rd"}))[0] == 403


@pytest.mark.parametrize(
    "change",
    [
        {"sr": "c"},
        {"sp": "rw"},
        {"se": "2099-01-01T00:00:00Z"},
        {"st": None},
        {"spr": None},
        {"sv": "2020-02-10"},
        {"sdd": "2"},
        {"skoid": "11111111-1111-1111-1111-111111111111"},
        {"ske": "2099-01-01T00:00:00Z"},
        {"si": "policy"},
        {"sig": "AAAA"},
    ],
)
def test_a_sas_of_the_accounts_own_key_that_was_changed_is_refused(account, change):
    values = dict(parse_qsl(own_sas(account)))
    assert send(account, f"{CONTAINER}/tables/a/p", urlencode(values))[0] == 200
    changed = {name: value for name, value in (values | change).items() if value is not None}
    assert send(account, f"{CONTAINER}/tables/a/p", urlencode(changed)) == (403, "AuthenticationFailed")


def test_the_accounts_own_key_can_be_replaced_and_switched_off(account):
    place, sas = f"{CONTAINER}/tables/a/p", own_sas(account)
    assert send(account, place, own_sas(account, key=b"another"))[0] == 403
    account.own_key = b"renewed"
    assert send(account, place, sas) == (403, "AuthenticationFailed")
    assert send(account, place, own_sas(account)) == (200, "")
    account.allows_own_key = False
    assert send(account, place, own_sas(account)) == (403, "KeyBasedAuthenticationNotPermitted")


def test_a_sas_of_the_accounts_own_key_lives_from_its_start_to_its_end(account):
    sas, place = own_sas(account), f"{CONTAINER}/tables/a/p"
    for minutes, status in ((-6, 403), (0, 200), (29, 200), (31, 403)):
        account.clock.offset = timedelta(minutes=minutes)
        assert send(account, place, sas)[0] == status


@pytest.mark.parametrize(
    "path", ["tables/a b", "tables/ä", "tables/a%41", "tables/a+b", "tables/it's", "x/y/z/w"]
)
def test_names_with_other_characters_are_signed_decoded(account, key, closing, path):
    account.put(CONTAINER, f"{path}/p")
    lake = container_client(account, closing, directory_sas(account, key, path))
    assert lake.download_blob(f"{path}/p").readall() == b"content"
    assert [blob.name for blob in lake.list_blobs(name_starts_with=f"{path}/")] == [f"{path}/p"]
    assert refusal(lake.download_blob, "tables/b/p") == "AuthenticationFailed"


@pytest.mark.parametrize(
    "version",
    ["2018-11-09", "2019-12-12", "2020-02-10", "2020-12-06", "2025-07-05", "2026-04-06", "2026-10-06"],
)
def test_a_signature_of_every_version_is_as_documented(account, key, version):
    # Written out here once more, from the documentation's lists of fields.
    expiry = (account.clock() + timedelta(minutes=9)).strftime("%Y-%m-%dT%H:%M:%SZ")
    kind, resource = ("c", "") if version < "2020-02-10" else ("d", "/tables/a")
    signed = [
        *("rl", "", expiry, f"/blob/{account.name}/{CONTAINER}{resource}"),
        *(key.signed_oid, key.signed_tid, key.signed_start, key.signed_expiry, "b", key.signed_version),
        *(["", "", ""] if version >= "2020-02-10" else []),
        *(["", ""] if version >= "2025-07-05" else []),
        *("", "https", version, kind, ""),
        *([""] if version >= "2020-12-06" else []),
        *(["", ""] if version >= "2026-04-06" else []),
        *("", "", "", "", ""),
    ]
    digest = hmac.new(base64.b64decode(key.value), "\n".join(signed).encode(), hashlib.sha256).digest()
    parameters = {
        "sv": version,
        "sr": kind,
        "sp": "rl",
        "se": expiry,
        "spr": "https",
        "sks": "b",
        "skoid": key.signed_oid,
        "sktid": key.signed_tid,
        "skv": key.signed_version,
        "skt": key.signed_start,
        "ske": key.signed_expiry,
        "sig": base64.b64encode(digest).decode(),
        **({"sdd": "2"} if kind == "d" else {}),
    }
    assert send(account, f"{CONTAINER}/tables/a/p", urlencode(parameters)) == (200, "")
    assert send(account, f"{CONTAINER}/tables/a/p", urlencode(parameters | {"sp": "r"}))[0] == 403


@pytest.mark.parametrize(
    "change",
    [
        {"sdd": "1"},
        {"sdd": "3"},
        {"sdd": "02"},
        {"sdd": None},
        {"sr": "c"},
        {"sr": "b"},
        {"sp": "rwl"},
        {"sp": "lr"},
        {"se": "2099-01-01T00:00:00Z"},
        {"st": None},
        {"ske": "2099-01-01T00:00:00Z"},
        {"skoid": "11111111-1111-1111-1111-111111111111"},
        {"spr": None},
        {"sv": "2020-12-06"},
        {"sv": "2099-01-01"},
        {"sv": "2017-01-01"},
        {"sig": "AAAA"},
        {"sig": None},
        {"srh": "x"},
        {"si": "policy"},
        {"ss": "b"},
    ],
)
def test_a_sas_that_was_changed_is_refused(account, key, change):
    values = dict(parse_qsl(directory_sas(account, key)))
    assert send(account, f"{CONTAINER}/tables/a/p", urlencode(values))[0] == 200
    changed = {name: value for name, value in (values | change).items() if value is not None}
    status, code = send(account, f"{CONTAINER}/tables/a/p", urlencode(changed))
    assert status in (401, 403)
    assert code in ("AuthenticationFailed", "NoAuthenticationInformation")


@pytest.mark.parametrize(
    "path",
    [
        "tables/a/../b/p",
        "tables/a/%2e%2e/b/p",
        "tables/a%2F..%2Fb/p",
        "tables/a//p",
        "tables/./a/p",
        "tables//a/p",
        "tables%2Fab/p",
        "tables/a",
        "tables",
        "?restype=container&comp=list&prefix=tables/a/../b/",
        "?restype=container&comp=list&prefix=tables/a/&prefix=tables/b/",
        "?restype=container&comp=list&prefix=tables/a/&showonly=files",
        "?comp=list&prefix=tables/a/",
        "?restype=container&comp=acl",
        "?resource=filesystem&recursive=true&directory=tables",
        "?resource=filesystem&recursive=true&directory=tables/ab",
        "?resource=filesystem&recursive=true",
        "tables/a/p?comp=tags",
        "tables/a/p?comp=copy",
        "tables/a/p?versionid=x",
    ],
)
def test_other_ways_to_leave_the_directory_are_refused(account, key, path):
    place = f"{CONTAINER}{'' if path.startswith('?') else '/'}{path}"
    if path == "tables/a":
        # The directory itself is in the directory; as a blob it is not there.
        assert send(account, place, directory_sas(account, key))[0] == 404
    else:
        assert send(account, place, directory_sas(account, key))[0] in (400, 403)


@pytest.mark.parametrize("directory", ["tables/a", "tables/a/sub"])
def test_path_list_stays_in_the_directory(account, key, directory):
    query = f"?resource=filesystem&recursive=false&directory={quote(directory, safe='')}"
    assert send(account, f"{CONTAINER}{query}", directory_sas(account, key)) == (200, "")


def test_obstore_is_held_to_the_directory_too(account, key):
    store = AzureStore(
        container_name=CONTAINER,
        account_name=account.name,
        endpoint=account.endpoint,
        sas_key=directory_sas(account, key),
        # It takes no certificate of an authority of our own.
        client_options={"allow_invalid_certificates": True},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
    )
    assert bytes(obstore.get(store, "tables/a/p").bytes()) == b"content"
    assert obstore.head(store, "tables/a/p")["size"] == len(b"content")
    assert {meta["path"] for meta in obstore.list(store, "tables/a").collect()} == set(PATHS[:3])
    assert len(obstore.list_with_delimiter(store, "tables/a")["common_prefixes"]) == 2
    for call in (
        lambda: obstore.get(store, "tables/ab/p"),
        lambda: obstore.head(store, "tables/b/p"),
        lambda: obstore.list(store, "tables").collect(),
        lambda: obstore.list(store).collect(),
        lambda: obstore.put(store, "tables/a/new", b"x", use_multipart=False),
        lambda: obstore.delete(store, "tables/a/p"),
    ):
        with pytest.raises(BaseError, match="403"):
            call()


def test_a_batch_of_deletions_is_authorized_part_by_part(account, closing):
    writer = account.login.register(Principal(secret="its-secret", may_write=True))
    reader = account.login.register(Principal(secret="its-secret"))
    account.put(CONTAINER, "tables/a/old")
    for principal in (reader, writer):
        store = AzureStore(
            container_name=CONTAINER,
            account_name=account.name,
            endpoint=account.endpoint,
            tenant_id=account.login.tenant,
            client_id=principal.client_id,
            client_secret="its-secret",
            authority_host=account.login.origin,
            client_options={"allow_invalid_certificates": True},
            retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
        )
        if principal is writer:
            obstore.delete(store, "tables/a/old")
        else:
            with pytest.raises(BaseError, match="403"):
                obstore.delete(store, "tables/a/old")
            assert bytes(obstore.get(store, "tables/a/old").bytes()) == b"content"
    own = delegation_key(account, secret_credential(account, writer, closing), closing)
    lake = container_client(account, closing, secret_credential(account, writer, closing))
    assert not lake.get_blob_client("tables/a/old").exists()
    sas = directory_sas(account, own, permission="rd")
    assert send(account, f"{CONTAINER}?restype=container&comp=batch", sas, "POST")[0] == 403


def test_a_sas_for_https_is_refused_without_it(account, key):
    sas, either = directory_sas(account, key), directory_sas(account, key, protocol="https,http")
    with serving(account.app()) as account.origin:
        place = f"{CONTAINER}/tables/a/p"
        assert send(account, place, sas) == (403, "AuthorizationProtocolMismatch")
        assert send(account, place, either) == (200, "")
        account.assumes_https = True
        assert send(account, place, sas) == (200, "")


class StaticToken:
    """A token that did not come from the SDK's own identities, which want https."""

    def __init__(self, token):
        self._token = token

    def get_token(self, *scopes, **_):
        from azure.core.credentials import AccessToken  # noqa: PLC0415

        return AccessToken(self._token, int(datetime.now(UTC).timestamp()) + 3600)


def test_a_sas_from_another_address_is_refused(account, key):
    place = f"{CONTAINER}/tables/a/p"
    assert send(account, place, directory_sas(account, key, ip="127.0.0.1")) == (200, "")
    assert send(account, place, directory_sas(account, key, ip="10.0.0.1-10.0.0.9"))[0] == 403


def test_a_sas_lives_from_its_start_to_its_end_and_no_longer_than_its_key(account, key):
    sas, place = directory_sas(account, key), f"{CONTAINER}/tables/a/p"
    early = directory_sas(account, key, start=account.clock() + timedelta(minutes=3))
    long = directory_sas(account, key, expiry=account.clock() + timedelta(days=1))
    assert [send(account, place, each)[0] for each in (sas, early, long)] == [200, 403, 200]
    account.clock.offset = timedelta(minutes=-6)
    assert send(account, place, sas) == (403, "AuthenticationFailed")
    account.clock.offset = timedelta(minutes=31)
    assert [send(account, place, each)[0] for each in (sas, long)] == [403, 200]
    account.clock.offset = timedelta(minutes=61)
    assert send(account, place, long) == (403, "AuthenticationFailed")


def test_revoked_keys_end_every_sas_and_new_ones_work(account, gateway, key, closing):
    sas, place = directory_sas(account, key), f"{CONTAINER}/tables/a/p"
    assert send(account, place, sas)[0] == 200
    account.revoke_delegation_keys()
    assert send(account, place, sas) == (403, "AuthenticationFailed")
    fresh = delegation_key(account, secret_credential(account, gateway, closing), closing)
    assert send(account, place, directory_sas(account, fresh))[0] == 200
    account.login.forget(gateway)
    assert send(account, place, directory_sas(account, fresh)) == (403, "AuthenticationFailed")


def test_a_flat_account_has_no_directories(azurite, tmp_path, closing):
    with running_azure(tmp_path / "flat", azurite, is_hierarchical=False) as account:
        gateway = account.login.register(Principal(secret="its-secret"))
        account.make_container(CONTAINER)
        account.put(CONTAINER, "tables/a/p")
        key = delegation_key(account, secret_credential(account, gateway, closing), closing)
        place = f"{CONTAINER}/tables/a/p"
        assert send(account, place, directory_sas(account, key)) == (403, "AuthenticationFailed")
        expiry = account.clock() + timedelta(minutes=30)
        sas = generate_container_sas(
            account.name, CONTAINER, permission="r", expiry=expiry, user_delegation_key=key
        )
        assert send(account, place, sas)[0] == 200


@pytest.mark.parametrize(
    ("start", "expiry"),
    [
        (timedelta(), timedelta(days=7, minutes=1)),
        (timedelta(days=-3), timedelta(days=5)),
        (timedelta(hours=1), timedelta(minutes=1)),
        (timedelta(hours=-2), timedelta(hours=-1)),
    ],
)
def test_a_delegation_key_of_a_wrong_time_is_refused(account, gateway, closing, start, expiry):
    now = account.clock()
    credential = secret_credential(account, gateway, closing)
    with pytest.raises(HttpResponseError) as caught:
        delegation_key(account, credential, closing, now + start, now + expiry)
    assert caught.value.status_code == 400


def test_a_delegation_key_needs_the_role(account, closing):
    reader = account.login.register(Principal(secret="its-secret", may_delegate=False))
    credential = secret_credential(account, reader, closing)
    assert refusal(delegation_key, account, credential, closing) == "AuthorizationPermissionMismatch"


def test_tokens_that_do_not_hold_get_no_key(account, gateway, closing):
    for token in (
        "garbage",
        account.login.new_token(gateway, "https://graph.microsoft.com"),
        FederatedIssuer(account.login.issuer).token(gateway.object_id, account.clock()),
    ):
        with pytest.raises(ClientAuthenticationError) as caught:
            delegation_key(account, StaticToken(token), closing)
        assert caught.value.status_code == 401
    token = account.login.new_token(gateway, "https://storage.azure.com")
    account.clock.offset = timedelta(hours=2)
    with pytest.raises(ClientAuthenticationError):
        delegation_key(account, StaticToken(token), closing)
    assert account.keys_issued == 0


def test_the_gateways_own_token_reads_what_its_roles_allow(account, gateway, closing):
    lake = container_client(account, closing, secret_credential(account, gateway, closing))
    assert lake.download_blob("tables/b/p").readall() == b"content"
    assert refusal(lake.upload_blob, "tables/b/new", b"") == "AuthorizationPermissionMismatch"
    blind = account.login.register(Principal(secret="its-secret", may_read=False))
    lake = container_client(account, closing, secret_credential(account, blind, closing))
    assert refusal(lake.download_blob, "tables/b/p") == "AuthorizationPermissionMismatch"


def test_a_wrong_secret_gets_no_token(account, gateway, closing):
    with pytest.raises(AzureError, match="invalid_client"):
        secret_credential(account, gateway, closing, "another").get_token(
            "https://storage.azure.com/.default"
        )


def test_workload_identity_is_checked(account, closing, tmp_path):
    workload = account.login.register(Principal(federated_subject="system:serviceaccount:default:sluice"))
    token_file = tmp_path / "token"

    def ask(token):
        token_file.write_text(token)
        credential = WorkloadIdentityCredential(
            tenant_id=account.login.tenant,
            client_id=workload.client_id,
            token_file_path=str(token_file),
            **identity_options(account),
        )
        return closing.enter_context(credential)

    cluster, now = account.login.federation, Clock()()
    good = cluster.token("system:serviceaccount:default:sluice", now)
    assert delegation_key(account, ask(good), closing).signed_oid == workload.object_id
    for token in (
        cluster.token("system:serviceaccount:default:other", now),
        cluster.token("system:serviceaccount:default:sluice", now, "another-audience"),
        cluster.token("system:serviceaccount:default:sluice", now - timedelta(hours=2)),
        FederatedIssuer(cluster.issuer).token("system:serviceaccount:default:sluice", now),
    ):
        with pytest.raises(AzureError, match="invalid_client"):
            ask(token).get_token("https://storage.azure.com/.default")


def test_managed_identity_is_checked(account, closing, monkeypatch):
    machine = account.login.managed_identity = account.login.register(Principal())
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{account.login.origin}/msi/token")
    for header, works in ((account.login.identity_header, True), ("another", False)):
        monkeypatch.setenv("IDENTITY_HEADER", header)
        credential = closing.enter_context(ManagedIdentityCredential(connection_verify=str(account.ca)))
        if works:
            assert delegation_key(account, credential, closing).signed_oid == machine.object_id
        else:
            with pytest.raises(AzureError):
                credential.get_token("https://storage.azure.com/.default")


def test_faults_are_answered_once(account, gateway, closing):
    account.faults.add(503, "7")
    credential = secret_credential(account, gateway, closing)
    with pytest.raises(HttpResponseError) as caught:
        delegation_key(account, credential, closing)
    assert caught.value.status_code == 503
    assert delegation_key(account, credential, closing).signed_oid == gateway.object_id


def test_an_anonymous_request_is_refused_and_errors_tell_no_signature(account, key):
    assert send(account, f"{CONTAINER}/tables/a/p", "x=1")[0] in (401, 403)
    assert account.decisions[-1].code != "OK"
    sas = directory_sas(account, key)
    signature = parse_qs(sas)["sig"][0]
    assert not re.search(re.escape(signature), repr(account.decisions))
