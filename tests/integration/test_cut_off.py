"""Cutting off what is already out: what each cutter says, what it does, and that the store then refuses."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import jwt
import pytest
from aiohttp import web
from botocore.exceptions import ClientError
from moto import mock_aws

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location, parse_location
from gateway.errors import Unavailable
from gateway.ports import Cut, StorageSettings
from tests.certificates import new_authority
from tests.components import (
    AZURE_DOUBLE,
    AZURITE,
    BOTO3,
    FAKE_GCS_SERVER,
    GCP_DOUBLE,
    MOTO,
    R2_DOUBLE,
    SEAWEEDFS,
)
from tests.contract.issuing import Denied, Harness, issue, shared
from tests.contract.s3_recipient import S3Harness
from tests.contract.test_issuing import keys, opened, seaweedfs_options
from tests.doubles.azure import StorageAccount
from tests.doubles.azure_oauth import Principal, Refused
from tests.doubles.r2 import R2, ApiToken
from tests.doubles.server import serving
from tests.integration.test_identities import (
    azure_place,
    client_secret,
    email,
    gcp_account,
    gcp_place,
    r2_place,
)
from vendors.aws import vendor as aws_vendor
from vendors.aws.cutter import POLICY_NAME

HOUR = timedelta(hours=1)


async def cut_off(harness: Harness, recipient: str = "acme") -> Cut:
    assert harness.storage.cutter is not None
    return await harness.storage.cutter.cut_off(recipient, datetime.now(UTC))


async def assert_dead(harness: Harness, credential: Credential, table: Location) -> None:
    with pytest.raises(ClientError, match=r"Unauthorized|InvalidAccessKeyId"):
        await harness.read(credential, table, "part-0")


@dataclass(kw_only=True)
class CloudflareTokens:
    """The call of Cloudflare's API that deletes a token of an account, for whoever has the permission."""

    r2: R2
    parent: ApiToken
    permitted: str = field(default_factory=lambda: secrets.token_urlsafe(30), repr=False)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_delete("/client/v4/accounts/{account}/tokens/{token}", self._delete)
        return app

    async def _delete(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.permitted}":
            errors = [{"code": 9109, "message": "Unauthorized to access requested resource"}]
            return web.json_response({"success": False, "errors": errors}, status=403)
        named = (request.match_info["account"], request.match_info["token"])
        if named != (self.r2.account, self.parent.access_key_id):
            return web.json_response({"success": False, "errors": [{"code": 1001}]}, status=404)
        self.r2.delete_token(self.parent)
        return web.json_response({"success": True, "errors": [], "result": {"id": named[1]}})


@pytest.mark.component(R2_DOUBLE, BOTO3)
class TestR2:
    @pytest.fixture
    def parent(self, r2):
        return r2.register(ApiToken(permission="object-read-only"))

    @pytest.fixture
    def cloudflare(self, r2, parent):
        return CloudflareTokens(r2=r2, parent=parent)

    @pytest.fixture
    def api(self, cloudflare):
        with serving(cloudflare.app()) as origin:
            yield f"{origin}/client/v4"

    def revocation(self, token: str) -> dict[str, object]:
        return {"deleteParentToken": True, "apiToken": {"value": token}}

    async def test_deleted_parent_takes_every_credential_with_it_at_once(self, r2, parent, cloudflare, api):
        place = r2_place(r2, apiEndpoint=api, revocation=self.revocation(cloudflare.permitted))
        async with place.opened(keys(parent.keys)) as harness:
            (table, first), (other, second) = await shared(harness, "orders"), await shared(harness, "items")
            assert await harness.read(first, table, "part-0") == b"rows"

            cut = await cut_off(harness)

            assert cut.done
            assert parent.access_key_id in cut.words
            assert "other recipients too" in cut.words
            await assert_dead(harness, first, table)
            await assert_dead(harness, second, other)
            # What the words say of the time until there is a new parent.
            assert "what this storage issues opens nothing" in cut.words
            await assert_dead(harness, await issue(harness, table), table)
            assert harness.storage.reader is not None
            with pytest.raises(Unavailable):
                await harness.storage.reader.list_log(table, start="")

    async def test_new_parent_issues_what_works_and_the_old_stays_dead(self, r2, parent, cloudflare, api):
        place = r2_place(r2, apiEndpoint=api, revocation=self.revocation(cloudflare.permitted))
        async with place.opened(keys(parent.keys)) as harness:
            table, before = await shared(harness, "orders")
            await cut_off(harness)
        following = r2.register(ApiToken(permission="object-read-only"))

        async with place.opened(keys(following.keys)) as harness:
            assert await harness.read(await issue(harness, table), table, "part-0") == b"rows"
            await assert_dead(harness, before, table)

    async def test_credentials_of_the_api_end_with_the_parent_too(self, r2, parent):
        place = r2_place(r2, mint="api", apiToken={"value": r2.register(ApiToken()).value})
        async with place.opened(keys(parent.keys)) as harness:
            table, credential = await shared(harness, "orders")
            assert await harness.read(credential, table, "part-0") == b"rows"

            r2.delete_token(parent)

            await assert_dead(harness, credential, table)
            with pytest.raises(Unavailable):
                await issue(harness, table)

    async def test_token_without_the_permission_cuts_nothing_off_and_says_so(
        self, r2, parent, cloudflare, api, caplog
    ):
        place = r2_place(r2, apiEndpoint=api, revocation=self.revocation("not-permitted"))
        async with place.opened(keys(parent.keys)) as harness:
            table, credential = await shared(harness, "orders")

            cut = await cut_off(harness)

            assert not cut.done
            assert "not deleted" in cut.words
            assert "not-permitted" not in cut.words + caplog.text
            assert await harness.read(credential, table, "part-0") == b"rows"

    async def test_without_the_setting_the_command_that_it_tells_is_the_one_that_works(
        self, r2, parent, cloudflare, api
    ):
        async with r2_place(r2, apiEndpoint=api).opened(keys(parent.keys)) as harness:
            table, credential = await shared(harness, "orders")

            cut = await cut_off(harness)

            assert not cut.done
            assert f"curl -X DELETE {api}/accounts/{r2.account}/tokens/{parent.access_key_id} " in cut.words
            assert await harness.read(credential, table, "part-0") == b"rows"


@dataclass(kw_only=True)
class AzureManagement:
    """The management API's call that revokes the delegation keys of a storage account."""

    azure: StorageAccount
    permitted: Principal
    subscription: str = field(default_factory=lambda: str(uuid4()))
    group: str = "lake(rg)"
    origin: str = ""
    ca: str = ""

    @property
    def settings(self) -> dict[str, str]:
        return {"subscription": self.subscription, "resourceGroup": self.group, "endpoint": self.origin}

    def app(self) -> web.Application:
        app = web.Application()
        account = "providers/Microsoft.Storage/storageAccounts/{account}/revokeUserDelegationKeys"
        app.router.add_post(
            f"/subscriptions/{{subscription}}/resourceGroups/{{group}}/{account}", self._revoke
        )
        return app

    async def _revoke(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            # The token is one for this API, and not the one that the storage service takes.
            caller = self.azure.login.bearer(token, frozenset({self.origin}))
        except Refused:
            return web.json_response({"error": {"code": "InvalidAuthenticationToken"}}, status=401)
        if caller != self.permitted:
            return web.json_response({"error": {"code": "AuthorizationFailed"}}, status=403)
        named = dict(request.match_info)
        known = {"subscription": self.subscription, "group": self.group, "account": self.azure.name}
        if named != known or "api-version" not in request.query:
            return web.json_response({"error": {"code": "ResourceNotFound"}}, status=404)
        self.azure.revoke_delegation_keys()
        return web.Response(status=200)


@pytest.mark.system
@pytest.mark.component(AZURE_DOUBLE, AZURITE)
class TestAzure:
    @pytest.fixture
    def gateway(self, azure):
        return azure.login.register(Principal(secret="its-secret"))

    @pytest.fixture
    def management(self, azure, gateway, tmp_path):
        service = AzureManagement(azure=azure, permitted=gateway)
        certificate = new_authority(tmp_path / "management").issue("management")
        authorities = tmp_path / "authorities.pem"
        authorities.write_text(azure.ca.read_text() + Path(certificate.ca).read_text())
        service.ca = str(authorities)
        with serving(service.app(), certificate) as origin:
            service.origin = origin
            yield service

    @pytest.fixture
    def open_storage(self, azure, gateway, management):
        """Open the storage as one replica after the other would."""

        def open_storage(principal: Principal = gateway) -> Any:
            place = azure_place(azure, caFile=management.ca, revocation=management.settings)
            return place.opened(client_secret(azure, principal, {"value": "its-secret"}))

        return open_storage

    async def test_revoked_keys_end_the_sas_that_is_out_and_the_next_one_works(self, open_storage):
        async with open_storage() as harness:
            table, before = await shared(harness, "orders")
            assert await harness.read(before, table, "part-0") == b"rows"

            cut = await cut_off(harness)

            assert cut.done
            assert "other recipients too" in cut.words
            with pytest.raises(Denied):
                await harness.read(before, table, "part-0")
            assert await harness.read(await issue(harness, table), table, "part-0") == b"rows"

    async def test_other_replica_issues_what_works_once_it_was_opened_again(self, open_storage):
        async with open_storage() as replica:
            table, _ = await shared(replica, "orders")
            async with open_storage() as revoking:
                cut = await cut_off(revoking)
            # It still signs with the key that it had: this is why the words ask for revokedAt.
            with pytest.raises(Denied):
                await replica.read(await issue(replica, table), table, "part-0")
            assert "revokedAt" in cut.words

        async with open_storage() as replica:
            assert await replica.read(await issue(replica, table), table, "part-0") == b"rows"

    async def test_identity_without_the_permission_cuts_nothing_off_and_says_so(
        self, azure, open_storage, caplog
    ):
        other = azure.login.register(Principal(secret="its-secret"))
        async with open_storage(other) as harness:
            table, credential = await shared(harness, "orders")

            cut = await cut_off(harness)

            assert not cut.done
            assert "az storage account revoke-delegation-keys" in cut.words
            assert "revokeUserDelegationKeys/action" in caplog.text
            assert "its-secret" not in cut.words + caplog.text
            assert await harness.read(credential, table, "part-0") == b"rows"

    async def test_without_the_setting_nothing_is_done(self, azure, gateway):
        identity = client_secret(azure, gateway, {"value": "its-secret"})
        async with azure_place(azure).opened(identity) as harness:
            table, credential = await shared(harness, "orders")

            cut = await cut_off(harness)

            assert not cut.done
            assert f"revoke-delegation-keys --name {azure.name}" in cut.words
            assert await harness.read(credential, table, "part-0") == b"rows"


@pytest.mark.system
@pytest.mark.component(GCP_DOUBLE, FAKE_GCS_SERVER)
async def test_gcp_says_when_a_token_ends_at_the_latest_and_whose_account_to_disable(gcp):
    sharer = gcp_account(gcp, "sharer")
    key = json.dumps(gcp.identity.key_file(gcp_account(gcp, "gateway", "sharer")))
    identity = {
        "kind": "serviceAccount",
        "key": {"value": key},
        "impersonate": {"serviceAccount": email("sharer")},
    }
    async with gcp_place(gcp).opened(identity) as harness:
        table, credential = await shared(harness, "orders")
        cut = await cut_off(harness)
        told = re.search(r"at the latest at (\S+)\.", cut.words)

        assert not cut.done
        assert told is not None
        assert credential.expires_at <= datetime.fromisoformat(told[1])
        assert f"gcloud iam service-accounts disable {sharer.email}" in cut.words
        assert await harness.read(credential, table, "part-0") == b"rows"
        # The same name, and no more the account whose tokens are out.
        gcp.identity.register(replace(sharer, roles={}))
        with pytest.raises(OSError, match="401"):
            await harness.read(credential, table, "part-0")


@pytest.mark.component(SEAWEEDFS, BOTO3)
async def test_seaweedfs_session_stands_and_falls_with_the_signing_key(seaweedfs):
    """Seen from the other side, which spares a restart: the store keeps its key, the token gets another."""
    options = seaweedfs_options(seaweedfs)
    async with opened("s3", f"s3://{seaweedfs.bucket}", options) as storage:
        harness = S3Harness(storage, seaweedfs)
        table, credential = await shared(harness, "orders")

        cut = await cut_off(harness)

        assert not cut.done
        assert "signing key" in cut.words
        # Nothing was done, and the token is no other for being signed again by the same key.
        for untouched in (credential, _signed(credential, seaweedfs.signing_key)):
            assert await harness.read(untouched, table, "part-0") == b"rows"
        await assert_dead(harness, _signed(credential, secrets.token_bytes(32)), table)


def _signed(credential: Credential, key: bytes) -> Credential:
    assert isinstance(credential.secret, AwsTempCredentials)
    claims = jwt.decode(credential.secret.session_token, options={"verify_signature": False})
    token = jwt.encode(claims, key, algorithm="HS256")
    return replace(credential, secret=replace(credential.secret, session_token=token))


@pytest.mark.component(MOTO)
class TestAws:
    """moto keeps policies and enforces none: this proves what IAM is told."""

    NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
    ROLE = "arn:aws:iam::123456789012:role/vended"

    @pytest.fixture
    def iam(self):
        with mock_aws():
            client = boto3.client(
                "iam", region_name="eu-west-1", aws_access_key_id="root", aws_secret_access_key="root"
            )
            trust = json.dumps({"Version": "2012-10-17", "Statement": []})
            client.create_role(RoleName="vended", AssumeRolePolicyDocument=trust)
            yield client

    async def cut(self, recipient: str, now: datetime, **options: object) -> Cut:
        common: dict[str, object] = {
            "region": "eu-west-1",
            "identity": {"kind": "keys", "accessKeyId": "AKIAOWN", "secretAccessKey": {"value": "own"}},
            "role": {"arn": self.ROLE},
            "revocation": {"putRolePolicy": True},
        }
        settings = StorageSettings(
            name="lake",
            prefix=parse_location("s3://lake"),
            options=common | options,
            public_url="https://x",
            clock=lambda: now,
        )
        # A new one each time, as each `sluice revoke` is a process of its own.
        async with aws_vendor.open(settings) as storage:
            assert storage.cutter is not None
            return await storage.cutter.cut_off(recipient, now)

    async def test_denials_are_put_merged_and_pruned(self, iam):
        for recipient, hours in (("acme", 0), ("globex", 1), ("acme", 2), ("initech", 13)):
            cut = await self.cut(recipient, self.NOON + hours * HOUR)
            assert cut.done
            assert recipient in cut.words

        # A session of globex that began before 13:00 can live until 01:00; the next cut is at 01:00.
        assert self.denied(iam) == {
            "acme": "2026-03-01T14:00:00Z",
            "globex": "2026-03-01T13:00:00Z",
            "initech": "2026-03-02T01:00:00Z",
        }
        await self.cut("initech", self.NOON + 15 * HOUR)
        assert self.denied(iam) == {"initech": "2026-03-02T03:00:00Z"}

    async def test_earlier_cut_does_not_take_back_a_later_one(self, iam):
        await self.cut("acme", self.NOON)
        await self.cut("acme", self.NOON - HOUR)

        assert self.denied(iam) == {"acme": "2026-03-01T12:00:00Z"}

    async def test_other_policies_and_statements_of_the_role_are_left_alone(self, iam):
        theirs = {"Effect": "Deny", "Action": "s3:PutObject", "Resource": "*"}
        for name in (POLICY_NAME, "theirs"):
            self.put(iam, name, theirs)

        await self.cut("acme", self.NOON)

        assert theirs in self.statements(iam, POLICY_NAME)
        assert len(self.statements(iam, POLICY_NAME)) == 2
        assert self.statements(iam, "theirs") == [theirs]

    async def test_statement_denies_everything_to_one_recipients_older_sessions(self, iam):
        await self.cut("acme", self.NOON)
        await self.cut("a b", self.NOON, sessionTags=False)

        tagged, named = self.statements(iam, POLICY_NAME)
        for statement in (tagged, named):
            assert (statement["Effect"], statement["Action"], statement["Resource"]) == ("Deny", "*", "*")
            assert statement["Condition"].pop("DateLessThan") == {
                "aws:TokenIssueTime": "2026-03-01T12:00:00Z"
            }
        assert tagged["Condition"] == {"StringEquals": {"aws:PrincipalTag/sluice:recipient": "acme"}}
        # By the name that the session has, which is not always the recipient's.
        (pattern,) = named["Condition"].pop("StringLike").values()
        assert re.fullmatch(r"\*:a_b-[0-9a-f]{12}", pattern)
        assert named["Condition"] == {}

    async def test_policy_without_room_is_left_as_it_was_and_nothing_is_called_done(self, iam):
        places = [f"arn:aws:s3:::lake/{'x' * 100}-{number}" for number in range(82)]
        theirs = {"Effect": "Deny", "Action": "s3:PutObject", "Resource": places}
        self.put(iam, POLICY_NAME, theirs)

        cut = await self.cut("acme", self.NOON)

        assert not cut.done
        assert "aws iam put-role-policy" in cut.words
        assert self.statements(iam, POLICY_NAME) == [theirs]

    async def test_without_the_setting_the_command_is_told_and_nothing_is_done(self, iam):
        cut = await self.cut("acme", self.NOON, revocation={})

        assert not cut.done
        document = re.search(r"--policy-document '(.*)'", cut.words)
        assert document is not None
        assert len(json.loads(document[1])["Statement"]) == 1
        assert iam.list_role_policies(RoleName="vended")["PolicyNames"] == []

    def put(self, iam: Any, name: str, statement: Mapping[str, object]) -> None:
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_role_policy(RoleName="vended", PolicyName=name, PolicyDocument=policy)

    def statements(self, iam: Any, name: str) -> list[dict[str, Any]]:
        found = iam.get_role_policy(RoleName="vended", PolicyName=name)["PolicyDocument"]
        statements: list[dict[str, Any]] = found["Statement"]
        return statements

    def denied(self, iam: Any) -> dict[str, str]:
        """Return until when sessions must have begun to be denied, by recipient."""
        conditions = [statement["Condition"] for statement in self.statements(iam, POLICY_NAME)]
        tag = "aws:PrincipalTag/sluice:recipient"
        return {
            found["StringEquals"][tag]: found["DateLessThan"]["aws:TokenIssueTime"] for found in conditions
        }
