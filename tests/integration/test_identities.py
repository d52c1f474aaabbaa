"""The gateway's own identities: each kind that an entry can name issues, and nobody stands in for it."""

from __future__ import annotations

import json
import re
import secrets
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore.exceptions import ClientError

from gateway.adapters.vendors import find_vendor
from gateway.domain.location import Location, parse_location
from gateway.errors import Unavailable
from gateway.ports import Clock, Storage, StorageSettings, utcnow
from tests.components import (
    AZURE_DOUBLE,
    AZURITE,
    BOTO3,
    FAKE_GCS_SERVER,
    GCP_DOUBLE,
    R2_DOUBLE,
    SEAWEEDFS,
)
from tests.contract.azure_recipient import AzureHarness
from tests.contract.gcp_recipient import GcpHarness
from tests.contract.issuing import Denied, Harness, issue, shared
from tests.contract.s3_recipient import S3Harness
from tests.contract.test_issuing import keys
from tests.doubles.azure import StorageAccount
from tests.doubles.azure_oauth import Principal
from tests.doubles.gcp import GoogleCloud
from tests.doubles.gcp_identity import ServiceAccount
from tests.doubles.oidc import OidcIssuer, running_oidc
from tests.doubles.r2 import R2, ApiToken
from tests.doubles.rsa_keys import foreign_rsa_key
from tests.doubles.server import serving
from tests.stores.s3 import Keys, S3Store
from tests.stores.seaweedfs import GATEWAY_ARN, SeaweedFS, running_seaweedfs

AUDIENCE = "sts.sluice"
NO_SECRET = "a-secret-that-opens-nothing"
SUBJECT = "system:serviceaccount:default:sluice"
OWN_ROLE = "arn:aws:iam::000000000000:role/Own"
POD_ROLE = "arn:aws:iam::000000000000:role/Pod"
SHARED_ROLE = "arn:aws:iam::000000000000:role/Shared"
# As SeaweedFS itself names them; of a web identity's session it leaves the account out.
_SESSIONS = ["arn:aws:sts::000000000000:assumed-role/Own/sluice", "arn:aws:sts::assumed-role/Pod/sluice"]
# No capitals, digits or quotes: no code, no name of a class, no text of an SDK.
_OUR_WORDS = re.compile(r"[a-z][a-z ,;'-]+")

Identity = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A store, and how a storage of it is opened as somebody."""

    vendor: str
    prefix: str
    # All but the identity.
    options: dict[str, object] = field(default_factory=dict, repr=False)
    harness: Callable[[Storage], Harness]

    @asynccontextmanager
    async def opened(self, identity: Identity, *, clock: Clock = utcnow) -> AsyncIterator[Harness]:
        options = {**self.options, "identity": identity}
        vendor = find_vendor(self.vendor)
        assert not vendor.check(options)
        settings = StorageSettings(
            name="lake",
            prefix=parse_location(self.prefix),
            options=options,
            public_url="http://127.0.0.1",
            clock=clock,
        )
        async with vendor.open(settings) as storage:
            yield self.harness(storage)


class MovableClock:
    """Our own time, which a test moves on; the store's goes with it where it is told to."""

    def __init__(self, *others: Any) -> None:
        self.offset = timedelta()
        self._others = others

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def move(self, span: timedelta) -> None:
        self.offset += span
        for other in self._others:
            other.offset += span


def azure_place(azure: StorageAccount, **options: object) -> Place:
    azure.make_container("lake")
    common: dict[str, object] = {
        "authority": azure.login.origin,
        "blobEndpoint": azure.endpoint,
        "caFile": str(azure.ca),
        "hierarchicalNamespace": True,
    }
    return Place(
        vendor="azure",
        prefix=f"abfss://lake@{azure.name}.dfs.core.windows.net",
        options=common | options,
        harness=lambda storage: AzureHarness(storage, azure, "lake"),
    )


def client_secret(azure: StorageAccount, principal: Principal, secret: dict[str, str]) -> Identity:
    return {
        "kind": "clientSecret",
        "tenantId": azure.login.tenant,
        "clientId": principal.client_id,
        "clientSecret": secret,
    }


def gcp_place(gcp: GoogleCloud) -> Place:
    gcp.storage.make_bucket("lake")
    endpoints = ("stsEndpoint", "iamEndpoint", "storageEndpoint")
    return Place(
        vendor="gcp",
        prefix="gs://lake",
        options=dict.fromkeys(endpoints, gcp.origin),
        harness=lambda storage: GcpHarness(storage, gcp),
    )


def gcp_account(gcp: GoogleCloud, name: str, *may_impersonate: str, reads: bool = True) -> ServiceAccount:
    roles: dict[str, tuple[str, ...]] = {"lake": ("roles/storage.objectViewer",)} if reads else {}
    return gcp.identity.register(
        ServiceAccount(email=email(name), roles=roles, may_impersonate=tuple(map(email, may_impersonate)))
    )


def email(name: str) -> str:
    return f"{name}@test.iam.gserviceaccount.com"


def r2_place(r2: R2, **options: object) -> Place:
    common: dict[str, object] = {
        "accountId": r2.account,
        "endpoint": r2.endpoint,
        "apiEndpoint": f"{r2.endpoint}/client/v4",
    }
    # Whoever owns the tables is not whoever issues for them.
    owner = r2.register(ApiToken())
    return Place(
        vendor="r2",
        prefix="s3://lake",
        options=common | options,
        harness=lambda storage: S3Harness(
            storage, S3Store(endpoint=r2.endpoint, admin=owner.keys, region="auto")
        ),
    )


async def assert_opens_its_directory(harness: Harness) -> None:
    base = f"base-{secrets.token_hex(4)}"
    table, credential = await shared(harness, "orders", base)
    neighbour = harness.location(f"{base}/customers")
    await harness.put(neighbour, "part-0", b"secret")

    assert await harness.read(credential, table, "part-0") == b"rows"
    with pytest.raises(Denied):
        await harness.read(credential, neighbour, "part-0")


async def assert_refused(
    harness: Harness, caplog: pytest.LogCaptureFixture, *hidden: str, reads: bool = False
) -> None:
    """Nothing is issued and nothing read, one line of our log says why, and no secret is told anywhere."""
    table = await _table(harness)
    caplog.clear()
    with pytest.raises(Unavailable) as caught:
        await issue(harness, table)
    # What keeps a value says in words of its own that it will ask for the next one again.
    ours = [record for record in caplog.records if record.name.startswith("vendors.")]
    lines = [record for record in ours if record.name != "vendors.renewal"]

    assert _OUR_WORDS.fullmatch(caught.value.message)
    assert len(lines) == 1
    if not reads:
        with pytest.raises(Unavailable):
            await _list_log(harness, table)
    told = caplog.text + "".join(traceback.format_exception(caught.value))
    assert not [secret for secret in hidden if secret in told]


async def _table(harness: Harness) -> Location:
    table = harness.location(f"base-{secrets.token_hex(4)}/orders")
    await harness.put(table, "_delta_log/0.json", b"log")
    return table


async def _list_log(harness: Harness, table: Location) -> list[str]:
    assert harness.storage.reader is not None
    return [file.name for file in await harness.storage.reader.list_log(table, start="")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[OidcIssuer]:
    with running_oidc() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def lake(cluster, tmp_path_factory) -> Iterator[SeaweedFS]:
    """A store whose role ``Shared`` trusts the gateway's user and the sessions of two roles of its own."""
    provider = {"issuer": cluster.origin, "clientId": AUDIENCE, "jwksUri": cluster.jwks_url}
    iam = {
        "providers": [{"name": "cluster", "type": "oidc", "enabled": True, "config": provider}],
        "policies": [{"name": "MayAssume", "document": _policy("sts:AssumeRole", Resource=[SHARED_ROLE])}],
        "roles": [
            _role(OWN_ROLE, "MayAssume", _policy("sts:AssumeRole", Principal={"AWS": GATEWAY_ARN})),
            _role(
                POD_ROLE,
                "MayAssume",
                _policy("sts:AssumeRoleWithWebIdentity", Principal={"Federated": "cluster"}),
            ),
            _role(
                SHARED_ROLE,
                "ReadLake",
                _policy("sts:AssumeRole", Principal={"AWS": [GATEWAY_ARN, *_SESSIONS]}),
            ),
        ],
    }
    with running_seaweedfs(tmp_path_factory.mktemp("identities"), iam=iam) as store:
        yield store


@pytest.fixture
def s3(lake) -> Place:
    return Place(
        vendor="s3",
        prefix=f"s3://{lake.bucket}",
        options={
            "profile": "seaweedfs",
            "endpoint": lake.endpoint,
            "region": lake.region,
            "role": {"arn": SHARED_ROLE},
            "acceptCaseVariants": True,
        },
        harness=lambda storage: S3Harness(storage, lake),
    )


@pytest.fixture
def token_file(tmp_path, cluster) -> Path:
    file: Path = tmp_path / "token"
    file.write_text(cluster.token(SUBJECT, AUDIENCE))
    return file


@pytest.fixture
def own(lake, tmp_path, token_file) -> dict[str, Identity]:
    """Identities that the store believes, by what is tried with them."""
    credentials = _profile(tmp_path / "credentials", "lake", lake.gateway)
    return {
        "keys": keys(lake.gateway),
        "profile": {"kind": "profile", "name": "lake", "file": str(credentials)},
        "keys and a role": {**keys(lake.gateway), "assumeRole": {"arn": OWN_ROLE}},
        "profile and a role": {
            "kind": "profile",
            "name": "lake",
            "file": str(credentials),
            "assumeRole": {"arn": OWN_ROLE},
        },
        "web identity": _web_identity(token_file),
    }


@pytest.fixture
def others(lake, tmp_path, cluster) -> dict[str, Identity]:
    """Identities that the store does not believe."""
    stranger = replace(lake.gateway, secret_access_key=NO_SECRET)
    (tmp_path / "empty").write_text("[lake]\nregion = us-east-1\n")
    (tmp_path / "forged").write_text(cluster.token(SUBJECT, AUDIENCE, forged=True))
    wrong = _profile(tmp_path / "wrong", "lake", stranger)
    return {
        "keys": keys(stranger),
        "keys that are gone": {
            **keys(lake.gateway),
            "secretAccessKey": {"file": str(tmp_path / "gone")},
        },
        "profile": {"kind": "profile", "name": "lake", "file": str(wrong)},
        "profile that is gone": {"kind": "profile", "name": "gone", "file": str(wrong)},
        "profile without keys": {"kind": "profile", "name": "lake", "file": str(tmp_path / "empty")},
        "role": {**keys(lake.gateway), "assumeRole": {"arn": POD_ROLE}},
        "web identity": _web_identity(tmp_path / "forged"),
        "web identity that is gone": _web_identity(tmp_path / "gone"),
    }


@pytest.fixture(scope="module")
def machine(lake) -> Iterator[str]:
    """Serve a good session of the gateway's to whoever runs on this machine, as container hosts do."""
    sts = lake.client(lake.gateway, "sts")
    session = sts.assume_role(RoleArn=OWN_ROLE, RoleSessionName="sluice")["Credentials"]

    async def answer(request: web.Request) -> web.Response:
        fields = {name: session[name] for name in ("AccessKeyId", "SecretAccessKey")}
        expiration = session["Expiration"].isoformat()
        return web.json_response({**fields, "Token": session["SessionToken"], "Expiration": expiration})

    app = web.Application()
    app.router.add_get("/credentials", answer)
    with serving(app) as origin:
        yield f"{origin}/credentials"


@pytest.fixture
def ambient(lake, machine, tmp_path, token_file, monkeypatch) -> dict[str, dict[str, str]]:
    """Put identities into the environment that are all good, and return them by what they are."""
    profile = _profile(tmp_path / "ambient", "default", lake.gateway)
    found = {
        "keys": {
            "AWS_ACCESS_KEY_ID": lake.gateway.access_key_id,
            "AWS_SECRET_ACCESS_KEY": lake.gateway.secret_access_key,
        },
        "profile": {"AWS_PROFILE": "default", "AWS_SHARED_CREDENTIALS_FILE": str(profile)},
        "web identity": {"AWS_WEB_IDENTITY_TOKEN_FILE": str(token_file), "AWS_ROLE_ARN": POD_ROLE},
        "machine": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": machine},
    }
    for name, value in (pair for values in found.values() for pair in values.items()):
        monkeypatch.setenv(name, value)
    # The recipient's SDK remembers the profiles of a test before.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    return found


@pytest.mark.component(SEAWEEDFS, BOTO3)
@pytest.mark.parametrize("kind", ["keys", "profile", "keys and a role", "profile and a role", "web identity"])
async def test_s3_identity_issues_what_opens_its_directory(s3, own, kind):
    async with s3.opened(own[kind]) as harness:
        await assert_opens_its_directory(harness)


@pytest.mark.component(SEAWEEDFS, BOTO3)
@pytest.mark.parametrize("kind", ["keys", "profile", "machine"])
async def test_s3_chain_takes_the_ambient_identity_because_it_was_named(s3, ambient, monkeypatch, kind):
    for name in (name for other, values in ambient.items() if other != kind for name in values):
        monkeypatch.delenv(name)
    async with s3.opened({"kind": "chain"}) as harness:
        await assert_opens_its_directory(harness)


@pytest.mark.component(SEAWEEDFS, BOTO3)
@pytest.mark.parametrize(
    "kind",
    [
        "keys",
        "keys that are gone",
        "profile",
        "profile that is gone",
        "profile without keys",
        "role",
        "web identity",
        "web identity that is gone",
    ],
)
async def test_s3_identity_that_does_not_hold_is_not_replaced_by_the_ambient_one(
    s3, lake, others, ambient, caplog, kind
):
    async with s3.opened(others[kind]) as harness:
        await assert_refused(harness, caplog, lake.gateway.secret_access_key, NO_SECRET)


@pytest.mark.component(SEAWEEDFS, BOTO3)
@pytest.mark.parametrize(
    "change",
    [{"forged": True}, {"issued_at": datetime.now(UTC) - timedelta(hours=2)}, {"audience": "another"}],
    ids=["forged", "expired", "for another audience"],
)
async def test_s3_web_identity_that_does_not_hold_is_refused_and_a_rotated_one_is_read(
    s3, own, cluster, token_file, caplog, change
):
    bad = cluster.token(**{"subject": SUBJECT, "audience": AUDIENCE, **change})
    token_file.write_text(bad)
    async with s3.opened(own["web identity"]) as harness:
        await assert_refused(harness, caplog, bad, bad.rpartition(".")[2])

        token_file.write_text(cluster.token(SUBJECT, AUDIENCE))
        await assert_opens_its_directory(harness)


@pytest.mark.component(SEAWEEDFS, BOTO3)
async def test_s3_role_that_does_not_trust_the_identity_gives_nothing(s3, lake, caplog):
    async with s3.opened(keys(lake.stranger)) as harness:
        # It may read logs by a policy of its own.
        await assert_refused(harness, caplog, lake.stranger.secret_access_key, reads=True)


@pytest.mark.component(SEAWEEDFS, BOTO3)
async def test_s3_keys_that_were_replaced_on_disk_are_used_for_the_next_session(s3, lake, tmp_path, caplog):
    named, secret = tmp_path / "id", tmp_path / "secret"

    def put(own: Keys) -> None:
        named.write_text(f"{own.access_key_id}\n")
        secret.write_text(f"{own.secret_access_key}\n")

    put(lake.gateway)
    identity = {
        "kind": "keys",
        "accessKeyId": {"file": str(named)},
        "secretAccessKey": {"file": str(secret)},
    }
    async with s3.opened(identity) as harness:
        await assert_opens_its_directory(harness)
        put(lake.stranger)
        await assert_refused(harness, caplog, lake.stranger.secret_access_key, reads=True)
        put(lake.gateway)
        await assert_opens_its_directory(harness)


@pytest.mark.component(SEAWEEDFS, BOTO3)
async def test_s3_profile_that_was_replaced_on_disk_is_used_for_the_next_session(s3, lake, tmp_path, caplog):
    file = _profile(tmp_path / "credentials", "lake", lake.stranger)
    async with s3.opened({"kind": "profile", "name": "lake", "file": str(file)}) as harness:
        await assert_refused(harness, caplog, lake.stranger.secret_access_key, reads=True)
        _profile(file, "lake", lake.gateway)
        await assert_opens_its_directory(harness)


def _profile(file: Path, name: str, own: Keys) -> Path:
    lines = (
        f"[{name}]",
        f"aws_access_key_id={own.access_key_id}",
        f"aws_secret_access_key={own.secret_access_key}",
    )
    file.write_text("\n".join(lines))
    return file


def _web_identity(file: Path) -> Identity:
    return {"kind": "webIdentity", "roleArn": POD_ROLE, "tokenFile": str(file)}


def _policy(action: str, **more: object) -> dict[str, object]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": [action], **more}]}


def _role(arn: str, attached: str, trust: dict[str, object]) -> dict[str, object]:
    name = arn.rpartition("/")[2]
    return {"roleName": name, "roleArn": arn, "trustPolicy": trust, "attachedPolicies": [attached]}


@pytest.mark.system
@pytest.mark.component(AZURE_DOUBLE, AZURITE)
class TestAzure:
    @pytest.fixture
    def place(self, azure):
        return azure_place(azure)

    @pytest.fixture
    def ambient(self, azure, tmp_path, monkeypatch):
        """Put a good application with its secret, and the token of a good workload, into the environment."""
        other = azure.login.register(Principal(secret="ambient-secret", federated_subject="ambient"))
        token = tmp_path / "ambient"
        token.write_text(azure.login.federation.token("ambient", datetime.now(UTC)))
        values = {
            "AZURE_TENANT_ID": azure.login.tenant,
            "AZURE_CLIENT_ID": other.client_id,
            "AZURE_CLIENT_SECRET": "ambient-secret",
            "AZURE_AUTHORITY_HOST": azure.login.origin,
            "AZURE_FEDERATED_TOKEN_FILE": str(token),
        }
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    async def test_client_secret_issues_what_opens_its_directory(self, azure, place):
        own = azure.login.register(Principal(secret="its-secret"))
        async with place.opened(client_secret(azure, own, {"value": "its-secret"})) as harness:
            await assert_opens_its_directory(harness)

    async def test_workload_identity_issues_what_opens_its_directory(self, azure, place, tmp_path, caplog):
        identity = _workload(azure, tmp_path / "token", subject=SUBJECT, trusted=SUBJECT)
        async with place.opened(identity) as harness:
            await assert_opens_its_directory(harness)

    async def test_managed_identity_issues_what_opens_its_directory(self, azure, place, monkeypatch):
        azure.login.managed_identity = own = azure.login.register(Principal())
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{azure.login.origin}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", azure.login.identity_header)
        async with place.opened({"kind": "managedIdentity", "clientId": own.client_id}) as harness:
            await assert_opens_its_directory(harness)

    async def test_chain_takes_the_ambient_identity_because_it_was_named(self, place, ambient):
        async with place.opened({"kind": "chain"}) as harness:
            await assert_opens_its_directory(harness)

    async def test_wrong_secret_is_not_replaced_by_the_ambient_one(self, azure, place, ambient, caplog):
        own = azure.login.register(Principal(secret="its-secret"))
        async with place.opened(client_secret(azure, own, {"value": "not-its-secret"})) as harness:
            await assert_refused(harness, caplog, "not-its-secret", "ambient-secret")

    async def test_workload_of_another_subject_is_not_replaced_by_the_ambient_one(
        self, azure, place, ambient, tmp_path, caplog
    ):
        identity = _workload(azure, tmp_path / "token", subject="another", trusted=SUBJECT)
        async with place.opened(identity) as harness:
            await assert_refused(harness, caplog, (tmp_path / "token").read_text(), "ambient-secret")

    async def test_identity_without_the_role_gets_no_key(self, azure, place, caplog):
        own = azure.login.register(Principal(secret="its-secret", may_delegate=False))
        async with place.opened(client_secret(azure, own, {"value": "its-secret"})) as harness:
            await assert_refused(harness, caplog, "its-secret", reads=True)
        assert "Storage Blob Delegator" in caplog.text

    async def test_secret_that_was_replaced_on_disk_is_used_for_the_next_key(
        self, azure, place, tmp_path, caplog
    ):
        file, clock = tmp_path / "secret", MovableClock(azure.clock)
        file.write_text("its-secret\n")
        own = azure.login.register(Principal(secret="its-secret"))
        async with place.opened(client_secret(azure, own, {"file": str(file)}), clock=clock) as harness:
            await assert_opens_its_directory(harness)
            azure.login.register(replace(own, secret="its-next-secret"))
            # What was had by the old one is over. The SDK counts by the machine's clock, which is not moved.
            clock.move(timedelta(hours=5))
            azure.login.life = timedelta(days=1)
            await assert_refused(harness, caplog, "its-secret")

            file.write_text("its-next-secret\n")
            await assert_opens_its_directory(harness)


def _workload(azure: StorageAccount, file: Path, *, subject: str, trusted: str) -> Identity:
    own = azure.login.register(Principal(federated_subject=trusted))
    file.write_text(azure.login.federation.token(subject, datetime.now(UTC)))
    return {
        "kind": "workloadIdentity",
        "tenantId": azure.login.tenant,
        "clientId": own.client_id,
        "tokenFile": str(file),
    }


@pytest.mark.system
@pytest.mark.component(GCP_DOUBLE, FAKE_GCS_SERVER)
class TestGcp:
    @pytest.fixture
    def place(self, gcp):
        return gcp_place(gcp)

    @pytest.fixture
    def ambient(self, gcp, tmp_path, monkeypatch):
        """Name the key of a good account in the environment."""
        file = _key_file(gcp, gcp_account(gcp, "ambient"), tmp_path / "ambient.json")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    async def test_key_file_issues_what_opens_its_directory(self, gcp, place, tmp_path):
        file = _key_file(gcp, gcp_account(gcp, "gateway"), tmp_path / "key.json")
        async with place.opened({"kind": "serviceAccount", "keyFile": str(file)}) as harness:
            await assert_opens_its_directory(harness)

    async def test_impersonation_issues_what_opens_its_directory(self, gcp, place, tmp_path):
        gcp_account(gcp, "sharer")
        gateway = gcp_account(gcp, "gateway", "sharer", reads=False)
        file = _key_file(gcp, gateway, tmp_path / "key.json")
        async with place.opened(_impersonating("sharer", file)) as harness:
            await assert_opens_its_directory(harness)

    async def test_chain_takes_the_ambient_identity_because_it_was_named(self, place, ambient):
        async with place.opened({"kind": "chain"}) as harness:
            await assert_opens_its_directory(harness)

    async def test_wrong_key_is_not_replaced_by_the_ambient_one(self, gcp, place, ambient, tmp_path, caplog):
        stranger = replace(gcp_account(gcp, "gateway"), key=foreign_rsa_key())
        file = _key_file(gcp, stranger, tmp_path / "key.json")
        async with place.opened({"kind": "serviceAccount", "keyFile": str(file)}) as harness:
            await assert_refused(harness, caplog, *_private_lines(file))

    async def test_key_that_is_gone_is_not_replaced_by_the_ambient_one(
        self, place, ambient, tmp_path, caplog
    ):
        async with place.opened({"kind": "serviceAccount", "keyFile": str(tmp_path / "gone")}) as harness:
            await assert_refused(harness, caplog)

    async def test_impersonation_that_is_not_allowed_gives_nothing(
        self, gcp, place, ambient, tmp_path, caplog
    ):
        gcp_account(gcp, "sharer")
        # It could read all by itself, and is not taken for the account that it was to be.
        file = _key_file(gcp, gcp_account(gcp, "gateway"), tmp_path / "key.json")
        async with place.opened(_impersonating("sharer", file)) as harness:
            await assert_refused(harness, caplog, *_private_lines(file))

    async def test_key_that_was_replaced_on_disk_is_used_for_the_next_token(
        self, gcp, place, tmp_path, caplog
    ):
        clock, account = MovableClock(gcp.clock), gcp_account(gcp, "gateway")
        file = _key_file(gcp, account, tmp_path / "key.json")
        async with place.opened({"kind": "serviceAccount", "keyFile": str(file)}, clock=clock) as harness:
            await assert_opens_its_directory(harness)
            rolled = gcp.identity.register(replace(account, key=foreign_rsa_key()))
            clock.move(timedelta(minutes=58))
            await assert_refused(harness, caplog, *_private_lines(file))

            _key_file(gcp, rolled, file)
            await assert_opens_its_directory(harness)


def _key_file(gcp: GoogleCloud, account: ServiceAccount, file: Path) -> Path:
    file.write_text(json.dumps(gcp.identity.key_file(account)))
    return file


def _impersonating(name: str, file: Path) -> Identity:
    return {
        "kind": "serviceAccount",
        "keyFile": str(file),
        "impersonate": {"serviceAccount": email(name)},
    }


def _private_lines(file: Path) -> list[str]:
    return [line for line in json.loads(file.read_text())["private_key"].splitlines() if "-----" not in line]


@pytest.mark.component(R2_DOUBLE, BOTO3)
class TestR2:
    @pytest.fixture
    def parent(self, r2):
        return r2.register(ApiToken(permission="object-read-only", buckets=("lake",)))

    @pytest.fixture
    def ambient(self, r2, monkeypatch):
        """Put the keys of a good token into the environment."""
        other = r2.register(ApiToken())
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", other.access_key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", other.secret_access_key)
        monkeypatch.setenv("CLOUDFLARE_API_TOKEN", other.value)
        return other

    @pytest.mark.parametrize("mint", ["local", "api"])
    async def test_keys_issue_what_opens_its_directory(self, r2, parent, mint):
        api = {"mint": "api", "apiToken": {"value": parent.value}} if mint == "api" else {}
        async with r2_place(r2, **api).opened(keys(parent.keys)) as harness:
            await assert_opens_its_directory(harness)

    async def test_wrong_api_token_is_not_replaced_by_the_ambient_one(self, r2, parent, ambient, caplog):
        place = r2_place(r2, mint="api", apiToken={"value": "not-its-token"})
        async with place.opened(keys(parent.keys)) as harness:
            await assert_refused(harness, caplog, "not-its-token", ambient.value, reads=True)

    async def test_wrong_secret_is_not_replaced_by_the_ambient_one(self, r2, parent, ambient, caplog):
        """Nobody is asked when a credential is signed here: the store does not believe what was signed."""
        wrong = secrets.token_hex(32)
        identity = keys(replace(parent.keys, secret_access_key=wrong))
        async with r2_place(r2).opened(identity) as harness:
            table, credential = await shared(harness, "orders")
            with pytest.raises(ClientError, match="Unauthorized"):
                await harness.read(credential, table, "part-0")
            with pytest.raises(Unavailable):
                await _list_log(harness, table)
        assert wrong not in caplog.text

    async def test_secret_that_is_gone_is_not_replaced_by_the_ambient_one(
        self, r2, parent, ambient, tmp_path, caplog
    ):
        identity = {**keys(parent.keys), "secretAccessKey": {"file": str(tmp_path / "gone")}}
        async with r2_place(r2).opened(identity) as harness:
            await assert_refused(harness, caplog, ambient.secret_access_key)

    async def test_secret_that_was_replaced_on_disk_signs_the_next_credential(self, r2, parent, tmp_path):
        file = tmp_path / "secret"
        file.write_text(parent.secret_access_key)
        identity = {**keys(parent.keys), "secretAccessKey": {"file": str(file)}}
        async with r2_place(r2).opened(identity) as harness:
            table, before = await shared(harness, "orders")
            rolled = r2.register(replace(parent, value=secrets.token_urlsafe(30)))
            # What the old secret signed cannot be verified any more.
            with pytest.raises(ClientError, match="Unauthorized"):
                await harness.read(before, table, "part-0")

            file.write_text(rolled.secret_access_key)
            await assert_opens_its_directory(harness)
