"""Each kind of store that URLs are signed for, with the storage entry that a gateway has for it."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from tests.certificates import new_authority
from tests.components import AZURE_DOUBLE, AZURITE, FAKE_GCS_SERVER, GCP_DOUBLE, MINIO, R2_DOUBLE, SEAWEEDFS
from tests.doubles.azure import StorageAccount
from tests.doubles.azure_oauth import Principal, running_login
from tests.doubles.gcp import GoogleCloud, running_gcp
from tests.doubles.gcp_identity import ServiceAccount
from tests.doubles.gcp_sign_blob import BlobService
from tests.doubles.r2 import ApiToken, running_r2
from tests.doubles.server import Clock, serving
from tests.stores.azurite import Azurite
from tests.stores.minio import Minio
from tests.stores.s3 import Keys, S3Store
from tests.stores.seaweedfs import SeaweedFS

Put = Callable[[str, bytes], None]


@dataclass(frozen=True, kw_only=True)
class UrlStore:
    """A place for tables below ``prefix``."""

    name: str
    prefix: str
    vendor: str
    options: dict[str, Any] = field(repr=False)
    # Where URLs lead to: all that comes before a key of this place.
    origin: str
    put: Put = field(repr=False)
    # The store's time, where it can be moved.
    clock: Clock | None = None
    # Who signs its URLs, where that is a service.
    blobs: BlobService | None = None

    @property
    def storage(self) -> dict[str, Any]:
        """Return the entry of ``storages``."""
        return {"name": self.name, "prefix": self.prefix, "vendor": self.vendor, "options": self.options}


@contextmanager
def seaweedfs_store(request: pytest.FixtureRequest, _: Path) -> Iterator[UrlStore]:
    """SeaweedFS, whose URLs are signed with the session of a role, and with a region of their own."""
    store: SeaweedFS = request.getfixturevalue("seaweedfs")
    identity = _keys(store.gateway) | {"assumeRole": {"arn": store.role_arn}}
    yield _bucket_of(
        store,
        name="seaweedfs",
        vendor="s3",
        options={"profile": "seaweedfs", "region": "weed-north-1", "identity": identity},
    )


@contextmanager
def minio_store(request: pytest.FixtureRequest, _: Path) -> Iterator[UrlStore]:
    """MinIO, whose URLs are signed with keys that have no end."""
    store: Minio = request.getfixturevalue("minio")
    options = {"profile": "minio", "identity": _keys(store.gateway)}
    yield _bucket_of(store, name="minio", vendor="s3", options=options)


@contextmanager
def aws_store(request: pytest.FixtureRequest, _: Path) -> Iterator[UrlStore]:
    """The vendor for AWS, at an address of its own: behind it a store that verifies."""
    store: Minio = request.getfixturevalue("minio")
    options = {"region": store.region, "identity": _keys(store.gateway)}
    yield _bucket_of(store, name="aws", vendor="aws", options=options)


@contextmanager
def r2_store(request: pytest.FixtureRequest, _: Path) -> Iterator[UrlStore]:
    store: SeaweedFS = request.getfixturevalue("seaweedfs")
    bucket = store.make_bucket(f"r2-urls-{secrets.token_hex(4)}")
    with running_r2(store) as service:
        token = service.register(ApiToken(permission="object-read-only", buckets=(bucket,)))
        yield UrlStore(
            name="r2",
            prefix=f"s3://{bucket}",
            vendor="r2",
            options={
                "accountId": service.account,
                "endpoint": service.endpoint,
                "identity": {
                    "kind": "keys",
                    "accessKeyId": token.access_key_id,
                    "secretAccessKey": {"value": token.secret_access_key},
                },
            },
            origin=f"{service.endpoint}/{bucket}/",
            put=lambda key, body: store.put(bucket, key, body),
            clock=service.clock,
        )


@contextmanager
def azure_key_store(request: pytest.FixtureRequest, _: Path) -> Iterator[UrlStore]:
    """Azurite, which verifies by itself what the account's own key has signed."""
    azurite: Azurite = request.getfixturevalue("azurite")
    key = {"value": base64.b64encode(azurite.key).decode()}
    with _new_container(azurite) as (container, put):
        yield UrlStore(
            name="azure-key",
            prefix=f"abfss://{container}@{azurite.account}.dfs.core.windows.net",
            vendor="azure",
            options={"identity": {"kind": "accountKey", "accountKey": key}, "blobEndpoint": azurite.endpoint},
            origin=f"{azurite.endpoint}/{container}/",
            put=put,
        )


@contextmanager
def azure_delegated_store(request: pytest.FixtureRequest, directory: Path) -> Iterator[UrlStore]:
    """A storage account that lends keys, to whoever has a token of its tenant's login."""
    azurite: Azurite = request.getfixturevalue("azurite")
    authority, clock = new_authority(directory / "login"), Clock()
    with (
        _new_container(azurite) as (container, put),
        running_login(clock, authority.issue("login")) as login,
    ):
        principal = login.register(Principal(secret="its-secret"))
        # Its clients cannot be given a certificate, and the login must have one.
        account = StorageAccount(azurite=azurite, login=login, clock=clock, assumes_https=True)
        with serving(account.app()) as origin:
            account.origin = origin
            yield UrlStore(
                name="azure-delegated",
                prefix=f"abfss://{container}@{azurite.account}.dfs.core.windows.net",
                vendor="azure",
                options={
                    "identity": {
                        "kind": "clientSecret",
                        "tenantId": login.tenant,
                        "clientId": principal.client_id,
                        "clientSecret": {"value": "its-secret"},
                    },
                    "authority": login.origin,
                    "blobEndpoint": account.endpoint,
                    "caFile": str(authority.ca),
                },
                origin=f"{account.endpoint}/{container}/",
                put=put,
                clock=clock,
            )


@contextmanager
def gcs_rsa_store(request: pytest.FixtureRequest, _: Path) -> Iterator[UrlStore]:
    """Google Cloud Storage, whose URLs are signed with a service account's key."""
    with running_gcp(request.getfixturevalue("fake_gcs")) as cloud:
        bucket = cloud.storage.make_bucket(f"urls-{secrets.token_hex(4)}")
        yield _gcs("gcs-rsa", cloud, bucket, {"identity": _key_of(cloud, _reader(cloud, bucket))})


@contextmanager
def gcs_hmac_store(request: pytest.FixtureRequest, _: Path) -> Iterator[UrlStore]:
    """The same, whose URLs are signed with an HMAC key."""
    with running_gcp(request.getfixturevalue("fake_gcs")) as cloud:
        bucket = cloud.storage.make_bucket(f"urls-{secrets.token_hex(4)}")
        account, secret = _reader(cloud, bucket), secrets.token_urlsafe(30)
        cloud.hmac_keys["GOOG1EXAMPLE"] = (secret, account.email)
        signing = {"kind": "hmac", "accessId": "GOOG1EXAMPLE", "secret": {"value": secret}}
        yield _gcs("gcs-hmac", cloud, bucket, {"identity": _key_of(cloud, account), "signing": signing})


@contextmanager
def gcs_keyless_store(request: pytest.FixtureRequest, _: Path) -> Iterator[UrlStore]:
    """The same, whose URLs Google itself signs for an account that the gateway may sign as."""
    with running_gcp(request.getfixturevalue("fake_gcs")) as cloud:
        bucket = cloud.storage.make_bucket(f"urls-{secrets.token_hex(4)}")
        account = _reader(cloud, bucket)
        gateway = cloud.identity.register(
            ServiceAccount(
                email="gateway@test.iam.gserviceaccount.com",
                may_impersonate=(account.email,),
                roles=account.roles,
            )
        )
        signing = {"kind": "signBlob", "serviceAccount": account.email}
        yield _gcs("gcs-keyless", cloud, bucket, {"identity": _key_of(cloud, gateway), "signing": signing})


Run = Callable[[pytest.FixtureRequest, Path], Any]


def _store(run: Run, name: str, *components: str, system: bool = True) -> Any:
    marks = [pytest.mark.component(*components), *([pytest.mark.system] if system else [])]
    return pytest.param(run, id=name, marks=marks)


def with_marks(store: Any, *marks: pytest.MarkDecorator) -> Any:
    """Return the parameter of a store with more marks."""
    return pytest.param(*store.values, id=store.id, marks=[*store.marks, *marks])


GCS_COMPONENTS = (GCP_DOUBLE, FAKE_GCS_SERVER)

SEAWEEDFS_STORE = _store(seaweedfs_store, "seaweedfs", SEAWEEDFS, system=False)
R2_STORE = _store(r2_store, "r2", R2_DOUBLE, SEAWEEDFS, system=False)
AZURE_DELEGATED_STORE = _store(azure_delegated_store, "azure-delegated", AZURE_DOUBLE, AZURITE)
GCS_RSA_STORE = _store(gcs_rsa_store, "gcs-rsa", *GCS_COMPONENTS)

# One for each way to spell and sign a URL: S3 with a session, R2, a SAS, and Google's V4.
VENDOR_STORES = (SEAWEEDFS_STORE, R2_STORE, AZURE_DELEGATED_STORE, GCS_RSA_STORE)
# Those whose URLs the same code spells, with a key of another kind.
OTHER_STORES = (
    _store(minio_store, "minio", MINIO),
    _store(aws_store, "aws", MINIO),
    _store(azure_key_store, "azure-key", AZURITE),
    _store(gcs_hmac_store, "gcs-hmac", *GCS_COMPONENTS),
    _store(gcs_keyless_store, "gcs-keyless", *GCS_COMPONENTS),
)
STORES = (*VENDOR_STORES, *OTHER_STORES)


def _bucket_of(store: S3Store, *, name: str, vendor: str, options: dict[str, Any]) -> UrlStore:
    """Return a new bucket of a store, at the store's own address."""
    bucket = store.make_bucket(f"lake-urls-{secrets.token_hex(4)}")
    return UrlStore(
        name=name,
        prefix=f"s3://{bucket}",
        vendor=vendor,
        options=options | {"endpoint": store.endpoint},
        origin=f"{store.endpoint}/{bucket}/",
        put=lambda key, body: store.put(bucket, key, body),
    )


def _keys(keys: Keys) -> dict[str, Any]:
    return {
        "kind": "keys",
        "accessKeyId": keys.access_key_id,
        "secretAccessKey": {"value": keys.secret_access_key},
    }


@contextmanager
def _new_container(azurite: Azurite) -> Iterator[tuple[str, Put]]:
    """Make a container; return its name, and a function that uploads to it."""
    name = f"urls-{secrets.token_hex(4)}"
    key = base64.b64encode(azurite.key).decode()
    with BlobServiceClient(azurite.endpoint, credential=key) as service:
        container = service.create_container(name)

        def put(key: str, body: bytes) -> None:
            container.upload_blob(key, body, overwrite=True)

        yield name, put


def _reader(cloud: GoogleCloud, bucket: str) -> ServiceAccount:
    roles: dict[str, tuple[str, ...]] = {bucket: ("roles/storage.objectViewer",)}
    return cloud.identity.register(ServiceAccount(email="reader@test.iam.gserviceaccount.com", roles=roles))


def _key_of(cloud: GoogleCloud, account: ServiceAccount) -> dict[str, Any]:
    return {"kind": "serviceAccount", "key": {"value": json.dumps(cloud.identity.key_file(account))}}


def _gcs(name: str, cloud: GoogleCloud, bucket: str, options: dict[str, Any]) -> UrlStore:
    return UrlStore(
        name=name,
        prefix=f"gs://{bucket}",
        vendor="gcp",
        options={"storageEndpoint": cloud.origin, "iamEndpoint": cloud.origin, **options},
        origin=f"{cloud.origin}/{bucket}/",
        put=lambda key, body: cloud.storage.put(bucket, key, body),
        clock=cloud.clock,
        blobs=cloud.blobs,
    )
