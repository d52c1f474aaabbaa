from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.domain.credential import AwsTempCredentials
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from gateway.errors import Unsupported
from vendors.s3.config import parse
from vendors.s3.issuer import S3Issuer
from vendors.sts import Sts

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEYS = {"kind": "keys", "accessKeyId": "k", "secretAccessKey": {"value": "s"}}


class FakeClient:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def assume_role(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return {
            "Credentials": {
                "AccessKeyId": "K1",
                "SecretAccessKey": "secret",
                "SessionToken": "token",
                "Expiration": NOON,
            }
        }


@pytest.fixture
def client():
    return FakeClient()


@pytest.fixture
def issue(client):
    with ThreadPoolExecutor(1) as threads:

        async def issue(profile: str, path: str = "t/1", life: timedelta = timedelta(hours=1), **more: Any):
            options = parse(
                {
                    "profile": profile,
                    "endpoint": "https://s3.test",
                    "identity": KEYS,
                    "region": "r",
                    **more,
                }
            )
            issuer = S3Issuer(options, Sts(lambda: client, threads, storage="lake"))
            location = parse_location(f"s3://lake/{path}")
            return await issuer.issue(Scope(location=location, recipient="acme", life=life))

        yield issue


async def test_a_session_is_issued_with_the_stores_region_and_endpoint(issue, client):
    credential = await issue("minio")

    assert credential.id == "K1"
    assert credential.expires_at == NOON
    assert credential.secret == AwsTempCredentials(
        access_key_id="K1",
        secret_access_key="secret",
        session_token="token",
        region="r",
        endpoint="https://s3.test",
    )
    assert set(client.asked[0]) == {"RoleSessionName", "Policy", "DurationSeconds"}
    assert client.asked[0]["RoleSessionName"] == "acme"


async def test_a_role_is_named_where_there_is_one(issue, client):
    await issue("ceph", role={"arn": "arn:aws:iam:::role/vended"})

    assert client.asked[0]["RoleArn"] == "arn:aws:iam:::role/vended"


async def test_what_a_store_of_ones_own_can_do_is_asked_of_it(issue, client):
    await issue(
        "custom",
        capabilities={"inlinePolicy": True, "externalId": True, "sessionTags": True},
        role={"arn": "arn:aws:iam:::role/vended", "externalId": "x"},
        sessionTags=True,
    )

    assert client.asked[0]["ExternalId"] == "x"
    assert client.asked[0]["Tags"] == [{"Key": "sluice:recipient", "Value": "acme"}]


@pytest.mark.parametrize(
    ("profile", "path", "more"),
    [
        ("minio", "a*b", {}),
        ("seaweedfs", "2026", {}),
        ("seaweedfs", "orders", {"role": {"arn": "arn:aws:iam:::role/vended"}}),
        ("ceph", "orders", {}),
        ("custom", "orders", {"capabilities": {}}),
    ],
)
async def test_what_the_store_cannot_express_is_refused_before_any_call(issue, client, profile, path, more):
    with pytest.raises(Unsupported):
        await issue(profile, path, **more)

    assert client.asked == []


@pytest.mark.parametrize(
    ("profile", "life"),
    [("minio", timedelta(minutes=14)), ("minio", timedelta(days=8)), ("seaweedfs", timedelta(hours=13))],
)
async def test_a_life_that_the_store_never_gives_is_refused_before_any_call(issue, client, profile, life):
    with pytest.raises(Unsupported, match="credentialLife"):
        await issue(profile, "2026", life)

    assert client.asked == []
