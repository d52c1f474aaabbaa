from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.domain.window import Window
from gateway.ports import Sessions, StorageSettings
from tests.cases import each_case
from tests.fakes.sessions import FakeSessions
from tests.unit.vendors.sdk import sdk_client, sdk_urls
from vendors.aws import vendor

LAKE = parse_location("s3://lake/sales")
OPTIONS = {
    "region": "eu-west-1",
    "identity": {"kind": "chain"},
    "role": {"arn": "arn:aws:iam::123456789012:role/vended"},
}


KEYS = {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"value": "secret"}}
ROLE = "arn:aws:iam::123456789012:role/own"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOW = Window(NOON, NOON + HOUR / 4, NOON + HOUR)


def settings(
    options: dict[str, Any], sessions: Sessions | None = None, prefix: str = LAKE.text
) -> StorageSettings:
    return StorageSettings(
        name="lake",
        prefix=parse_location(prefix),
        options=options,
        public_url="https://x",
        sessions=sessions,
    )


async def test_a_storage_reads_issues_probes_and_cuts_off():
    async with vendor.open(settings(OPTIONS)) as storage:
        assert (storage.name, storage.prefix) == ("lake", LAKE)
        assert storage.reader is not None
        assert storage.issuer is not None
        assert storage.issuer.names_recipients
        assert storage.probe is not None
        assert storage.cutter is not None


async def test_without_a_role_nothing_is_issued():
    async with vendor.open(settings({"region": "eu-west-1", "identity": {"kind": "chain"}})) as storage:
        assert storage.reader is not None
        assert storage.issuer is None
        assert storage.cutter is None


async def test_a_file_without_storages_opens_without_options():
    async with vendor.open(settings({})) as storage:
        assert storage.reader is not None
        assert storage.issuer is None


def test_the_vendor_serves_s3_and_checks_its_options():
    assert vendor.schemes == {"s3"}
    assert vendor.check(OPTIONS) == []
    assert vendor.check({}) != []
    assert vendor.check_dir(OPTIONS, LAKE) == []


async def test_process_that_does_not_sign_has_no_signer():
    async with vendor.open(settings(OPTIONS)) as storage:
        assert storage.signer is None


@each_case(
    ("identity", "has_sessions"),
    [
        (KEYS, False),
        ({**KEYS, "sessionToken": {"value": "t"}}, False),
        ({**KEYS, "assumeRole": {"arn": ROLE}}, True),
        ({"kind": "profile", "name": "lake"}, True),
        ({"kind": "webIdentity", "roleArn": ROLE, "tokenFile": "/token"}, True),
        ({"kind": "chain"}, True),
    ],
)
async def test_signer_tells_whether_it_signs_with_sessions(identity, has_sessions):
    options = {"region": "eu-west-1", "identity": identity}
    async with vendor.open(settings(options, FakeSessions())) as storage:
        assert storage.signer is not None
        assert storage.signer.has_sessions is has_sessions


# AT-53
@pytest.mark.parametrize(
    ("bucket", "options", "sdk"),
    [
        ("lake", {}, {}),
        ("lake", {"region": "cn-north-1"}, {"region": "cn-north-1"}),
        ("lake", {"region": "us-gov-west-1"}, {"region": "us-gov-west-1"}),
        ("lake", {"region": "us-east-1"}, {"region": "us-east-1"}),
        ("lake", {"dualStack": True}, {"use_dualstack_endpoint": True}),
        ("lake.example.org", {}, {}),
        ("la_ke", {}, {}),
        (
            "lake",
            {"endpoint": "https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com:8443"},
            {
                "endpoint": "https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com:8443",
                "addressing_style": "path",
            },
        ),
    ],
)
@pytest.mark.parametrize("token", ["", "t/+="])
async def test_urls_lead_where_the_options_say_and_not_the_environment(
    monkeypatch, bucket, options, sdk, token
):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, "https://ambient.example")
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", "false")
    identity = {**KEYS, "sessionToken": {"value": token}} if token else KEYS
    given = {"region": "eu-west-1", "identity": identity, **options}
    assert vendor.check(given) == []
    client = sdk_client(
        **{"region": "eu-west-1", "access_key_id": "AKIA1", "secret": "secret", "token": token, **sdk}
    )

    async with vendor.open(settings(given, FakeSessions(), f"s3://{bucket}")) as storage:
        assert storage.signer is not None
        table = parse_location(f"s3://{bucket}/sales")
        signed = await storage.signer.sign(table, Paths.of(["a%20b"]), WINDOW)

    url = f"{signed.origin}a%20b?{signed.query}{signed.signatures.decode()}"
    assert [url] == sdk_urls(client, bucket, ["sales/a b"], signed_at=NOON, life=HOUR)


@pytest.mark.parametrize(
    ("more", "sdk"),
    [
        ({}, {}),
        ({"dualStack": True}, {"use_dualstack_endpoint": True}),
        (
            {"endpoint": "https://accesspoint.vpce-1.s3.eu-west-1.vpce.amazonaws.com"},
            {"endpoint": "https://accesspoint.vpce-1.s3.eu-west-1.vpce.amazonaws.com"},
        ),
    ],
)
async def test_urls_of_an_access_point_lead_to_its_own_host(more, sdk):
    arn = "arn:aws:s3:eu-west-1:123456789012:accesspoint/sales"
    given = {"region": "eu-west-1", "identity": KEYS, "accessPoint": arn, **more}
    client = sdk_client(**{"region": "eu-west-1", "access_key_id": "AKIA1", "secret": "secret", **sdk})

    async with vendor.open(settings(given, FakeSessions(), "s3://sales-s3alias")) as storage:
        assert storage.signer is not None
        signed = await storage.signer.sign(storage.prefix, Paths.of(["a"]), WINDOW)

    url = f"{signed.origin}a?{signed.query}{signed.signatures.decode()}"
    assert [url] == sdk_urls(client, arn, ["a"], signed_at=NOON, life=HOUR)
