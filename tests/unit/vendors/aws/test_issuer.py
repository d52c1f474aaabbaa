from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.domain.credential import AwsTempCredentials
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from gateway.errors import Unsupported
from vendors.aws.config import parse
from vendors.aws.issuer import AwsIssuer
from vendors.sts import Sts

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TABLE = parse_location("s3://lake/sales/orders")
ROLE_ITSELF = {"kind": "chain", "assumeRole": {"arn": "arn:aws:iam::123456789012:role/gateway"}}
ROLE = {"arn": "arn:aws:iam::123456789012:role/vended", "externalId": "x-1"}


class FakeClient:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def assume_role(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return {
            "Credentials": {
                "AccessKeyId": "ASIA1",
                "SecretAccessKey": "secret",
                "SessionToken": "token",
                "Expiration": NOON,
            }
        }


@pytest.fixture
def client():
    return FakeClient()


@pytest.fixture
def open_issuer(client):
    with ThreadPoolExecutor(1) as threads:

        def open_issuer(**options: Any) -> AwsIssuer:
            parsed = parse({"region": "eu-west-1", "identity": {"kind": "chain"}, "role": ROLE, **options})
            assert parsed.role is not None
            return AwsIssuer(parsed, parsed.role, Sts(lambda: client, threads, storage="lake"))

        yield open_issuer


def scope(recipient: str = "acme", life: timedelta = timedelta(hours=1)) -> Scope:
    return Scope(location=TABLE, recipient=recipient, life=life)


async def test_a_session_of_the_role_is_issued_for_the_table(open_issuer, client):
    credential = await open_issuer().issue(scope())

    (asked,) = client.asked
    assert asked["RoleArn"] == ROLE["arn"]
    assert asked["ExternalId"] == "x-1"
    assert asked["DurationSeconds"] == 3600
    assert json.loads(asked["Policy"])["Statement"][0]["Resource"] == "arn:aws:s3:::lake/sales/orders/*"
    assert credential.id == "ASIA1"
    assert credential.expires_at == NOON
    assert credential.secret == AwsTempCredentials(
        access_key_id="ASIA1",
        secret_access_key="secret",
        session_token="token",
        region="eu-west-1",
        endpoint="",
    )


async def test_the_recipient_is_named_in_the_session_and_its_tags(open_issuer, client):
    issuer = open_issuer()
    await issuer.issue(scope("acme"))

    assert issuer.names_recipients
    assert client.asked[0]["RoleSessionName"] == "acme"
    assert client.asked[0]["Tags"] == [{"Key": "sluice:recipient", "Value": "acme"}]


async def test_tags_can_be_switched_off_and_the_name_stays(open_issuer, client):
    await open_issuer(sessionTags=False).issue(scope("acme"))

    assert "Tags" not in client.asked[0]
    assert client.asked[0]["RoleSessionName"] == "acme"


async def test_an_endpoint_of_ones_own_is_told_to_recipients(open_issuer):
    credential = await open_issuer(endpoint="https://vpce.example").issue(scope())

    assert credential.secret.endpoint == "https://vpce.example"


@pytest.mark.parametrize("life", [timedelta(minutes=14), timedelta(hours=13)])
async def test_a_life_that_aws_never_gives_is_refused_before_any_call(open_issuer, client, life):
    with pytest.raises(Unsupported, match="credentialLife"):
        await open_issuer().issue(scope(life=life))

    assert client.asked == []


async def test_a_role_that_assumes_a_role_gets_an_hour_at_most(open_issuer, client):
    with pytest.raises(Unsupported, match="set credentialLife to 1h"):
        await open_issuer(identity=ROLE_ITSELF).issue(scope(life=timedelta(hours=2)))
    assert client.asked == []

    await open_issuer(identity=ROLE_ITSELF).issue(scope(life=timedelta(hours=1)))
    await open_issuer().issue(scope(life=timedelta(hours=12)))
    assert [asked["DurationSeconds"] for asked in client.asked] == [3600, 43200]


async def test_a_path_that_no_policy_holds_is_refused_before_any_call(open_issuer, client):
    table = parse_location(f"s3://lake/{'x' * 1000}")

    with pytest.raises(Unsupported, match="too long"):
        await open_issuer().issue(Scope(location=table, recipient="acme", life=timedelta(hours=1)))
    assert client.asked == []
