from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.domain.window import Window
from gateway.errors import Unavailable
from tests.unit.vendors.r2.cloudflare import ACCOUNT, ENDPOINT, NOON, PARENT, SECRET, options
from tests.unit.vendors.sdk import sdk_client, sdk_urls
from vendors.r2.identity import Identity
from vendors.r2.signer import open_signer
from vendors.s3_signer import S3Signer

HOUR = timedelta(hours=1)
WINDOW = Window(NOON, NOON + HOUR / 4, NOON + HOUR)
LAKE = parse_location("s3://lake")


def signer(**changes: object) -> S3Signer:
    given = options(**changes)
    return open_signer(given, LAKE, Identity(given.identity))


# AT-53
@pytest.mark.parametrize(
    ("changes", "endpoint"),
    [
        ({}, ENDPOINT),
        ({"jurisdiction": "eu"}, f"https://{ACCOUNT}.eu.r2.cloudflarestorage.com"),
        ({"endpoint": "http://127.0.0.1:9000"}, "http://127.0.0.1:9000"),
    ],
)
async def test_url_is_the_one_that_the_sdk_makes_for_the_account(monkeypatch, changes, endpoint):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "ambient")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://ambient.example")
    client = sdk_client(
        region="auto", access_key_id=PARENT, secret=SECRET, endpoint=endpoint, addressing_style="path"
    )
    table = parse_location("s3://lake/sales/50% off")

    signed = await signer(**changes).sign(table, Paths.of(["date%3D1/a%20b"]), WINDOW)

    url = f"{signed.origin}date%3D1/a%20b?{signed.query}{signed.signatures.decode()}"
    assert [url] == sdk_urls(client, "lake", ["sales/50% off/date=1/a b"], signed_at=NOON, life=HOUR)
    assert signed.expires_at == WINDOW.expires_at


async def test_secret_that_was_replaced_signs_from_then_on(tmp_path):
    file = tmp_path / "secret"
    file.write_text("one", encoding="utf-8")
    identity = {"kind": "keys", "accessKeyId": PARENT, "secretAccessKey": {"file": str(file)}}
    opened = signer(identity=identity)
    first = await opened.sign(LAKE, Paths.of(["a"]), WINDOW)
    file.write_text("other", encoding="utf-8")

    assert (await opened.sign(LAKE, Paths.of(["a"]), WINDOW)).signatures != first.signatures


async def test_secret_that_cannot_be_read_signs_nothing(tmp_path):
    identity = {"kind": "keys", "accessKeyId": PARENT, "secretAccessKey": {"file": str(tmp_path / "gone")}}

    with pytest.raises(Unavailable, match="own identity") as raised:
        await signer(identity=identity).sign(LAKE, Paths.of(["a"]), WINDOW)
    assert "gone" not in raised.value.message
