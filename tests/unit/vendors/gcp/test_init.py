from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from tests.fakes.sessions import FakeSessions
from tests.unit.vendors.gcp.google import NOON, SHARER
from tests.unit.vendors.opened_store import opened_store
from vendors.gcp import vendor
from vendors.gcp.blob_signer import BlobSigner
from vendors.gcp.chain_signer import ChainSigner
from vendors.gcp.rsa_signer import RsaSigner

TABLE = parse_location("gs://lake/sales/orders")


def settings(**options: object) -> StorageSettings:
    return StorageSettings(
        name="lake", prefix=parse_location("gs://lake"), options=options, public_url="https://gateway.example"
    )


@pytest.mark.parametrize("options", [{}, {"identity": {"kind": "serviceAccount", "keyFile": "/none.json"}}])
async def test_storage_reads_and_issues_and_opening_it_calls_nobody(options):
    async with vendor.open(settings(**options)) as storage:
        assert storage.name == "lake"
        assert storage.signer is None
        assert None not in (storage.reader, storage.issuer, storage.probe, storage.cutter)


KEY = {"kind": "serviceAccount", "keyFile": "/none.json"}
SHARING = {"kind": "chain", "impersonate": {"serviceAccount": SHARER}}


@pytest.mark.parametrize(
    ("options", "kind"),
    [({}, ChainSigner), ({"identity": KEY}, RsaSigner), ({"identity": SHARING}, BlobSigner)],
)
async def test_storage_signs_where_the_process_does_and_opening_it_calls_nobody(options, kind):
    signing = replace(settings(**options), sessions=FakeSessions())

    async with vendor.open(signing) as storage:
        assert isinstance(storage.signer, kind)


async def test_storage_that_does_not_know_whom_to_sign_as_has_no_signer():
    signing = replace(settings(identity={"kind": "chain"}), sessions=FakeSessions())

    async with vendor.open(signing) as storage:
        assert storage.signer is None


def test_url_access_is_refused_where_nobody_is_named_to_sign_as():
    (words,) = vendor.check_url({"identity": {"kind": "chain"}}, TABLE)

    assert "no service account is known to sign URLs as" in words
    for options in ({"identity": KEY}, {"identity": SHARING}):
        assert vendor.check_url(options, TABLE) == []


def test_file_without_storages_leaves_the_signer_to_its_surroundings():
    assert vendor.check_url({}, TABLE) == []


@pytest.mark.parametrize(
    "identity",
    [
        {"kind": "chain", "impersonate": {"serviceAccount": SHARER}},
        {"kind": "metadata", "serviceAccount": SHARER},
    ],
)
async def test_cutter_names_the_account_that_the_settings_name(identity):
    async with vendor.open(settings(identity=identity)) as storage:
        assert storage.cutter is not None
        assert SHARER in (await storage.cutter.cut_off("acme", NOON)).words


async def test_environment_changes_neither_address_nor_credentials_of_the_reader(monkeypatch):
    monkeypatch.setenv("GOOGLE_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "ambient")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")

    async with vendor.open(settings(identity={"kind": "chain"})) as storage:
        store = await opened_store(storage.reader)

        assert store.config["base_url"] == "https://storage.googleapis.com"
        assert store.config["skip_signature"] == "false"
        assert store.credential_provider is not None


def test_location_that_cannot_be_expressed_is_told_before_anybody_asks():
    assert vendor.check_dir({}, TABLE) == []
    assert vendor.check_dir({}, parse_location("gs://lake")) == []
    assert vendor.check_dir({}, replace(TABLE, path="a\0b")) == [
        "an access boundary cannot name the character '\\x00'"
    ]


def test_options_are_checked():
    assert vendor.check({"identity": {"kind": "chain"}}) == []
    assert vendor.check({})
    assert vendor.schemes == {"gs"}


def test_secret_of_an_hmac_key_is_among_the_files_that_must_be_readable(tmp_path):
    signing = {"kind": "hmac", "accessId": "GOOG1", "secret": {"file": str(tmp_path / "gone")}}

    (fault,) = vendor.check_files({"identity": {"kind": "chain"}, "signing": signing})

    assert fault.path == ("signing", "secret", "file")


def test_life_that_google_never_gives_is_told():
    assert vendor.check_life({}, timedelta(hours=1)) == []
    (fault,) = vendor.check_life({}, timedelta(hours=2))
    assert "set credentialLife to 1h" in fault
