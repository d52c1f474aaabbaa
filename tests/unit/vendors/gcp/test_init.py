from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from tests.unit.vendors.gcp.google import NOON, SHARER
from vendors.gcp import vendor

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
        store = storage.reader._store  # type: ignore[union-attr]

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


def test_life_that_google_never_gives_is_told():
    assert vendor.check_life({}, timedelta(hours=1)) == []
    (fault,) = vendor.check_life({}, timedelta(hours=2))
    assert "set credentialLife to 1h" in fault
