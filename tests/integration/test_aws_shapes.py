"""The AWS vendor's calls have the shapes that AWS takes; moto enforces no policy, so this proves no scope."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.sts.models import sts_backends

from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Verdict
from gateway.domain.scope import Scope
from gateway.errors import Unavailable
from gateway.ports import Storage, StorageSettings
from tests.components import MOTO
from vendors.aws import vendor
from vendors.aws.cutter import POLICY_NAME

pytestmark = pytest.mark.component(MOTO)

REGION = "eu-west-1"
# The one account that moto has.
ACCOUNT = "123456789012"
KEYS = {"kind": "keys", "accessKeyId": "AKIAOWN", "secretAccessKey": {"value": "own-secret"}}
VENDED = f"arn:aws:iam::{ACCOUNT}:role/sharing/vended"
OWN = f"arn:aws:iam::{ACCOUNT}:role/gateway"
TABLE = parse_location("s3://lake/sales/orders")


class Metrics:
    def __init__(self) -> None:
        self.sizes: list[tuple[str, int]] = []

    def observe_policy_size(self, storage: str, percent: int) -> None:
        self.sizes.append((storage, percent))


@pytest.fixture
def aws():
    """Return what opens a client of the whole account, on which nothing has been done yet."""

    def client(service: str, **keys: str) -> Any:
        given = keys or {"aws_access_key_id": "root", "aws_secret_access_key": "root"}
        return boto3.client(service, region_name=REGION, **given)

    with mock_aws():
        client("s3").create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION})
        trust = json.dumps({"Version": "2012-10-17", "Statement": []})
        client("iam").create_role(RoleName="vended", Path="/sharing/", AssumeRolePolicyDocument=trust)
        yield client


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def open_storage(aws, metrics):
    @asynccontextmanager
    async def open_storage(identity: dict[str, Any] = KEYS, **more: Any) -> AsyncIterator[Storage]:
        options = {
            "region": REGION,
            "identity": identity,
            "role": {"arn": VENDED, "externalId": "x-1"},
            **more,
        }
        assert vendor.check(options) == []
        settings = StorageSettings(
            name="lake",
            prefix=parse_location("s3://lake"),
            options=options,
            public_url="https://x",
            metrics=metrics,
        )
        async with vendor.open(settings) as storage:
            yield storage

    return open_storage


def scope(**more: Any) -> Scope:
    return Scope(**{"location": TABLE, "recipient": "acme", "life": timedelta(hours=1), **more})


async def test_a_session_is_asked_for_with_policy_name_and_external_id(open_storage, aws, metrics):
    async with open_storage() as storage:
        credential = await storage.issuer.issue(scope())

    role = _assumed(credential.id)
    assert role.role_arn == VENDED
    assert role.session_name == "acme"
    assert role.external_id == "x-1"
    assert json.loads(role.policy)["Statement"][0]["Resource"] == "arn:aws:s3:::lake/sales/orders/*"
    assert abs(credential.expires_at - role.expiration.replace(tzinfo=UTC)) < timedelta(seconds=1)
    assert credential.secret.region == REGION
    assert metrics.sizes == [("lake", 6)]


async def test_what_is_issued_works_as_a_session_of_the_role(open_storage, aws):
    async with open_storage() as storage:
        credential = await storage.issuer.issue(scope(recipient="acme corp"))
    secret = credential.secret

    caller = aws(
        "sts",
        aws_access_key_id=secret.access_key_id,
        aws_secret_access_key=secret.secret_access_key,
        aws_session_token=secret.session_token,
    ).get_caller_identity()

    assert caller["Arn"].startswith(f"arn:aws:sts::{ACCOUNT}:assumed-role/vended/acme_corp-")


@pytest.mark.parametrize("recipient", ["a", "x" * 200, "Grün & Söhne / EU", "mail@example.org"])
async def test_every_recipients_name_is_taken(open_storage, recipient):
    async with open_storage() as storage:
        credential = await storage.issuer.issue(scope(recipient=recipient))

    assert len(_assumed(credential.id).session_name) <= 64


async def test_the_gateway_itself_can_be_an_assumed_role(open_storage, aws):
    identity = {**KEYS, "assumeRole": {"arn": OWN, "externalId": "own-1", "sessionName": "sluice-vending"}}
    async with open_storage(identity) as storage:
        await storage.issuer.issue(scope())
        await storage.issuer.issue(scope(recipient="other"))

    assumed = [(role.role_arn, role.session_name, role.external_id) for role in _roles()]
    # Its own session is asked for once.
    assert assumed == [(OWN, "sluice-vending", "own-1"), (VENDED, "acme", "x-1"), (VENDED, "other", "x-1")]


async def test_the_gateway_itself_can_be_a_web_identity(open_storage, tmp_path):
    token = tmp_path / "token"
    token.write_text("eyJhbGciOiJub25lIn0.e30.\n", encoding="utf-8")
    identity = {"kind": "webIdentity", "roleArn": OWN, "tokenFile": str(token), "sessionName": "pod"}
    async with open_storage(identity) as storage:
        await storage.issuer.issue(scope())

    assert [(role.role_arn, role.session_name) for role in _roles()] == [(OWN, "pod"), (VENDED, "acme")]


async def test_a_web_identity_without_its_token_is_nobody_else(open_storage, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AMBIENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ambient")
    identity = {"kind": "webIdentity", "roleArn": OWN, "tokenFile": str(tmp_path / "gone")}
    async with open_storage(identity) as storage:
        with pytest.raises(Unavailable, match="own identity"):
            await storage.issuer.issue(scope())
        with pytest.raises(Unavailable):
            await storage.reader.list_log(TABLE, start="")
        attempt = await storage.probe.attempt(None, Action.LIST, TABLE, "")

    assert attempt.verdict is Verdict.FAILED
    assert _roles() == []


async def test_the_chain_is_used_where_it_is_named(open_storage, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AMBIENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ambient")
    async with open_storage({"kind": "chain"}) as storage:
        assert (await storage.issuer.issue(scope())).id


async def test_a_listing_takes_any_prefix_of_a_key(open_storage, aws):
    for key in ("t/x", "t2/x", "Grün & +/x"):
        aws("s3").put_object(Bucket="lake", Key=key, Body=b"1")
    root = parse_location("s3://lake")
    async with open_storage() as storage:
        credential = await storage.issuer.issue(scope())
        for acting in (None, credential):
            listed = [
                await storage.probe.attempt(acting, Action.LIST, root, prefix) for prefix in ("t", "t/", "G")
            ]
            assert [found.names for found in listed] == [("t/x", "t2/x"), ("t/x",), ("Grün & +/x",)]


async def test_recipients_are_cut_off_by_a_policy_of_the_role(open_storage, aws):
    now = datetime.now(UTC)
    async with open_storage(revocation={"putRolePolicy": True}) as storage:
        for recipient in ("acme", "other", "acme"):
            cut = await storage.cutter.cut_off(recipient, now)
            assert cut.done

    policy = aws("iam").get_role_policy(RoleName="vended", PolicyName=POLICY_NAME)["PolicyDocument"]
    conditions = [statement["Condition"] for statement in policy["Statement"]]
    assert [found["StringEquals"]["aws:PrincipalTag/sluice:recipient"] for found in conditions] == [
        "other",
        "acme",
    ]


async def test_a_role_that_is_not_there_is_not_cut_off(open_storage, caplog):
    role = {"arn": f"arn:aws:iam::{ACCOUNT}:role/unknown"}
    async with open_storage(role=role, revocation={"putRolePolicy": True}) as storage:
        cut = await storage.cutter.cut_off("acme", datetime.now(UTC))

    assert not cut.done
    assert "NoSuchEntity" in cut.words


def _roles() -> list[Any]:
    roles: list[Any] = sts_backends[ACCOUNT]["aws"].assumed_roles
    return roles


def _assumed(access_key_id: str) -> Any:
    return next(role for role in _roles() if role.access_key_id == access_key_id)
