from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.domain.credential import AwsTempCredentials, Credential, GcpOauthToken
from gateway.errors import Unavailable, Unsupported
from gateway.ports import utcnow
from tests.unit.vendors.r2.cloudflare import ENDPOINT, NOON, PARENT, SECRET, options
from vendors.r2.identity import Identity
from vendors.r2.reader import open_own, open_with

KEYS = AwsTempCredentials(access_key_id="key", secret_access_key="secret", session_token="session")
AMBIENT = {
    "AWS_ACCESS_KEY_ID": "ambient",
    "AWS_SECRET_ACCESS_KEY": "ambient",
    "AWS_SESSION_TOKEN": "ambient",
    "AWS_ENDPOINT_URL": "https://ambient.example",
    "AWS_REGION": "ambient-1",
    "AWS_SKIP_SIGNATURE": "true",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
    "AWS_ALLOW_HTTP": "true",
}


@pytest.fixture(autouse=True)
def ambient(monkeypatch):
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)


def credential(secret: object) -> Credential:
    return Credential(id="1", secret=secret, expires_at=NOON)  # type: ignore[arg-type]


def stores() -> list[object]:
    own = open_own(options(), "lake", Identity(options().identity), utcnow)
    return [own, open_with(options(), "lake", credential(KEYS))]


@pytest.mark.parametrize("number", [0, 1], ids=["own", "recipient's"])
def test_bucket_is_where_the_settings_say(number):
    store = stores()[number]

    assert store.config == {
        "bucket": "lake",
        "endpoint": ENDPOINT,
        "region": "auto",
        "skip_signature": "false",
        "virtual_hosted_style_request": "false",
        "conditional_put": "etag",
    }
    assert store.client_options["allow_http"] == "false"


def test_plain_http_is_for_this_machine():
    local = options(endpoint="http://127.0.0.1:9000")

    store = open_own(local, "lake", Identity(local.identity), utcnow)
    assert store.client_options is not None
    assert str(store.client_options["allow_http"]) == "true"


async def test_own_keys_are_the_parents_and_asked_for_again_soon():
    store = open_own(options(), "lake", Identity(options().identity), utcnow)

    keys = await store.credential_provider()  # type: ignore[misc]

    assert (keys["access_key_id"], keys["secret_access_key"], keys["token"]) == (PARENT, SECRET, None)
    left = keys["expires_at"] - datetime.now(UTC)
    assert timedelta(minutes=5) < left <= timedelta(minutes=10)


async def test_own_keys_follow_their_file(tmp_path):
    file = tmp_path / "secret"
    file.write_text("one", encoding="utf-8")
    given = options(identity={"kind": "keys", "accessKeyId": PARENT, "secretAccessKey": {"file": str(file)}})
    store = open_own(given, "lake", Identity(given.identity), utcnow)
    provide = store.credential_provider

    assert (await provide())["secret_access_key"] == "one"  # type: ignore[misc]
    file.write_text("two", encoding="utf-8")
    assert (await provide())["secret_access_key"] == "two"  # type: ignore[misc]
    file.unlink()
    with pytest.raises(Unavailable):
        await provide()  # type: ignore[misc]


def test_recipient_has_the_keys_of_his_credential_and_no_others():
    keys = open_with(options(), "lake", credential(KEYS)).credential_provider()  # type: ignore[misc]

    assert (keys["access_key_id"], keys["secret_access_key"], keys["token"]) == ("key", "secret", "session")  # type: ignore[index]


def test_credential_of_another_cloud_is_refused():
    with pytest.raises(Unsupported):
        open_with(options(), "lake", credential(GcpOauthToken(oauth_token="t")))
