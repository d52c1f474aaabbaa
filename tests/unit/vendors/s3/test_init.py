from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.domain.window import Window
from gateway.ports import StorageSettings
from tests.fakes.sessions import FakeSessions
from tests.unit.vendors.sdk import sdk_client, sdk_urls
from vendors.s3 import vendor

LAKE = parse_location("s3://lake")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOW = Window(NOON, NOON + HOUR / 4, NOON + HOUR)
OPTIONS = {
    "profile": "minio",
    "endpoint": "http://127.0.0.1:9",
    "identity": {"kind": "keys", "accessKeyId": "k", "secretAccessKey": {"value": "s"}},
}


async def test_a_storage_reads_issues_probes_and_says_how_to_cut_off():
    settings = StorageSettings(name="lake", prefix=LAKE, options=OPTIONS, public_url="https://x")
    async with vendor.open(settings) as storage:
        assert (storage.name, storage.prefix) == ("lake", LAKE)
        assert storage.reader is not None
        assert storage.issuer is not None
        assert storage.issuer.names_recipients
        assert storage.probe is not None
        assert storage.cutter is not None


@pytest.mark.parametrize("accepted", [True, False])
async def test_a_storage_tells_whether_case_variants_were_accepted(accepted):
    options = {**OPTIONS, "acceptCaseVariants": accepted}
    settings = StorageSettings(name="lake", prefix=LAKE, options=options, public_url="https://x")
    async with vendor.open(settings) as storage:
        assert storage.folds_case is accepted


def test_the_vendor_serves_s3_and_checks_its_options():
    assert vendor.schemes == {"s3"}
    assert vendor.check(OPTIONS) == []
    assert vendor.check({}) != []
    assert vendor.check_dir(OPTIONS, parse_location("s3://lake/t")) == []


async def test_process_that_does_not_sign_has_no_signer():
    settings = StorageSettings(name="lake", prefix=LAKE, options=OPTIONS, public_url="https://x")
    async with vendor.open(settings) as storage:
        assert storage.signer is None


async def test_role_of_the_store_signs_with_sessions():
    role = {**OPTIONS["identity"], "assumeRole": {"arn": "arn:aws:iam:::role/own"}}  # type: ignore[dict-item]
    for identity, has_sessions in ((OPTIONS["identity"], False), (role, True)):
        async with vendor.open(_settings({"identity": identity})) as storage:
            assert storage.signer is not None
            assert storage.signer.has_sessions is has_sessions


# AT-53
@pytest.mark.parametrize(
    ("bucket", "options", "style"),
    [
        ("lake", {}, "path"),
        ("lake", {"pathStyle": False}, "virtual"),
        ("lake", {"region": "eu-de-1", "endpoint": "https://s3.example"}, "path"),
        ("lake", {"pathStyle": False, "endpoint": "https://s3.example:443"}, "virtual"),
        ("lake.example.org", {"pathStyle": False}, "virtual"),
        ("la_ke", {"pathStyle": False}, "virtual"),
        ("lake", {"pathStyle": False, "endpoint": "http://127.0.0.1:9000"}, "virtual"),
        ("lake", {"endpoint": "http://[::1]:9000"}, "path"),
    ],
)
async def test_urls_lead_where_the_options_say_and_not_the_environment(monkeypatch, bucket, options, style):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://ambient.example")
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    given = {"endpoint": "https://s3.example:9000", **options}
    client = sdk_client(
        region=str(given.get("region", "us-east-1")),
        access_key_id="k",
        secret="s",
        endpoint=str(given["endpoint"]),
        addressing_style=style,
    )

    async with vendor.open(_settings(given, bucket)) as storage:
        assert storage.signer is not None
        table = parse_location(f"s3://{bucket}/sales")
        signed = await storage.signer.sign(table, Paths.of(["a%20b"]), WINDOW)

    url = f"{signed.origin}a%20b?{signed.query}{signed.signatures.decode()}"
    (expected,) = sdk_urls(client, bucket, ["sales/a b"], signed_at=NOON, life=HOUR)
    # The SDK leaves a usual port in the URL and out of the host that it signs: who sends it is refused.
    assert url == expected.replace(":443/", "/")


def _settings(more: dict[str, Any], bucket: str = "lake") -> StorageSettings:
    options = {**OPTIONS, **more}
    assert vendor.check(options) == []
    return StorageSettings(
        name="lake",
        prefix=parse_location(f"s3://{bucket}"),
        options=options,
        public_url="https://x",
        sessions=FakeSessions(),
    )
