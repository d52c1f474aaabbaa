from __future__ import annotations

import pytest

from gateway.domain.credential import AwsTempCredentials, Credential, GcpOauthToken
from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Verdict
from tests.unit.vendors.r2.cloudflare import ENDPOINT, NOON, PARENT, FakeCloudflare, options
from vendors.http import Reply
from vendors.r2.identity import Identity
from vendors.r2.probe import open_probe

TABLE = parse_location("s3://lake/sales/orders")
KEYS = AwsTempCredentials(access_key_id="key", secret_access_key="secret", session_token="session")
CREDENTIAL = Credential(id="1", secret=KEYS, expires_at=NOON)


@pytest.fixture
def cloudflare():
    return FakeCloudflare()


@pytest.fixture
def probe(cloudflare):
    identity = Identity(options().identity)
    return open_probe(options(), "lake", identity, cloudflare.call, cloudflare.clock)


def listed(*keys: str) -> Reply:
    contents = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
    return Reply(status=200, body=f"<ListBucketResult>{contents}</ListBucketResult>".encode())


async def test_names_are_told_from_the_location_on(cloudflare, probe):
    cloudflare.reply = listed("sales/orders/b", "sales/orders/_delta_log/0.json", "sales/orders2/c")

    attempt = await probe.attempt(CREDENTIAL, Action.LIST, TABLE, "")

    assert attempt.verdict is Verdict.ALLOWED
    assert attempt.names == ("_delta_log/0.json", "b", "sales/orders2/c")


@pytest.mark.parametrize("path", ["", "_delta_log", "_delta_log/"])
async def test_prefix_is_listed_as_it_is_with_its_slash_or_without(cloudflare, probe, path):
    cloudflare.reply = listed()
    await probe.attempt(CREDENTIAL, Action.LIST, TABLE, path)

    (request,) = cloudflare.sent
    asked = f"sales/orders/{path}".replace("/", "%2F")
    assert request.url.startswith(f"{ENDPOINT}/lake?")
    assert request.url.endswith(f"prefix={asked}")
    assert "Credential=key/" in request.headers["authorization"]


async def test_without_a_credential_the_storage_itself_lists(cloudflare, probe):
    cloudflare.reply = listed("sales/orders/a")

    assert (await probe.attempt(None, Action.LIST, TABLE, "")).names == ("a",)
    assert f"Credential={PARENT}/" in cloudflare.sent[0].headers["authorization"]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (Reply(status=403, body=b"<Error><Code>AccessDenied</Code></Error>"), Verdict.DENIED),
        (Reply(status=403, body=b"<Error><Code>ExpiredToken</Code></Error>"), Verdict.FAILED),
        (Reply(status=500, body=b"<Error><Code>InternalError</Code></Error>"), Verdict.FAILED),
        (None, Verdict.FAILED),
    ],
)
async def test_only_a_refusal_is_a_denial(cloudflare, probe, reply, verdict):
    cloudflare.reply = reply

    assert (await probe.attempt(CREDENTIAL, Action.LIST, TABLE, "")).verdict is verdict


@pytest.mark.parametrize("action", list(Action))
async def test_credential_of_another_cloud_proves_nothing(probe, action):
    other = Credential(id="1", secret=GcpOauthToken(oauth_token="t"), expires_at=NOON)

    assert (await probe.attempt(other, action, TABLE, "a")).verdict is Verdict.FAILED
