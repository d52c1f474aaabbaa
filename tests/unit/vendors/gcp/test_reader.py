from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.errors import Unavailable
from tests.certificates import new_authority
from tests.unit.vendors.gcp.google import NOON, FakeGoogle, key_text, options
from vendors.gcp.config import GcpOptions
from vendors.gcp.identity import Identity
from vendors.gcp.reader import open_store

AMBIENT = {
    "GOOGLE_APPLICATION_CREDENTIALS": "/ambient.json",
    "GOOGLE_BUCKET": "ambient",
    "GOOGLE_SKIP_SIGNATURE": "true",
    "GOOGLE_ALLOW_HTTP": "true",
    "GOOGLE_BASE_URL": "https://ambient.example",
}


@pytest.fixture
def google():
    return FakeGoogle()


def opened_store(google: FakeGoogle, given: GcpOptions | None = None):
    given = given or options()
    return open_store(given, "lake", Identity(given, google.transport, google.clock))


def test_nothing_of_the_environment_takes_the_place_of_what_is_named(monkeypatch, google):
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)

    store = opened_store(google)

    assert store.config["bucket"] == "lake"
    assert store.config["base_url"] == "https://storage.googleapis.com"
    assert store.config["skip_signature"] == "false"
    assert store.client_options["allow_http"] == "false"
    assert "ambient" not in f"{store.config} {store.client_options}"


async def test_key_file_of_the_environment_is_nobodys(monkeypatch, google, tmp_path):
    file = tmp_path / "ambient.json"
    file.write_text(key_text(), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(file))

    assert (await opened_store(google).credential_provider())["token"] == "source-1"


async def test_token_is_that_of_the_identity_with_its_own_end(google):
    token = await opened_store(google).credential_provider()

    assert token["token"] == "source-1"
    assert NOON < token["expires_at"] <= NOON + timedelta(hours=1)


async def test_token_is_asked_for_when_it_is_needed_and_not_before(google):
    store = opened_store(google)
    assert google.asked == []

    await store.credential_provider()
    assert google.asked


async def test_identity_that_is_refused_reads_nothing(google):
    google.is_down = True

    with pytest.raises(Unavailable) as raised:
        await opened_store(google).credential_provider()
    assert "secret-in-the-words" not in raised.value.message


def test_plain_http_is_for_this_machine(google):
    store = opened_store(google, options(storageEndpoint="http://127.0.0.1:4443"))

    assert store.config["base_url"] == "http://127.0.0.1:4443"
    assert store.client_options["allow_http"] == "true"


def test_authorities_of_the_file_are_trusted(google, tmp_path):
    ca = new_authority(tmp_path).issue("storage").ca

    assert opened_store(google, options(caFile=str(ca))).client_options["root_certificate"]


def test_file_of_authorities_that_is_gone_is_an_error(google, tmp_path):
    with pytest.raises(FileNotFoundError):
        opened_store(google, options(caFile=str(tmp_path / "gone")))
