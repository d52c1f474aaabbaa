from __future__ import annotations

import pytest

from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from tests.cases import each_case
from tests.fakes.sessions import FakeSessions
from vendors.azure import vendor
from vendors.azure.issuer import AzureIssuer
from vendors.azure.signer import AzureSigner

PREFIX = parse_location("abfss://tables@lakeaccount.dfs.core.windows.net/shared")
OPTIONS = {"identity": {"kind": "managedIdentity"}, "hierarchicalNamespace": True}
BY_KEY = {"identity": {"kind": "accountKey", "accountKey": {"value": "a2V5"}}}


def settings(options, *, prefix=PREFIX, sessions=None) -> StorageSettings:
    return StorageSettings(name="lake", prefix=prefix, options=options, public_url="", sessions=sessions)


async def test_storage_reads_issues_proves_and_cuts_off():
    async with vendor.open(settings(OPTIONS)) as storage:
        assert (storage.name, storage.prefix) == ("lake", PREFIX)
        assert storage.reader is not None
        assert isinstance(storage.issuer, AzureIssuer)
        assert storage.probe is not None
        assert storage.cutter is not None
        assert storage.signer is None


@pytest.mark.parametrize(("options", "has_sessions"), [(OPTIONS, True), ({}, True), (BY_KEY, False)])
async def test_process_that_signs_has_a_signer_whose_sessions_are_its_own_or_none(options, has_sessions):
    async with vendor.open(settings(options, sessions=FakeSessions())) as storage:
        assert isinstance(storage.signer, AzureSigner)
        assert storage.signer.has_sessions is has_sessions
        assert storage.reader is not None


async def test_account_key_reads_and_signs_and_does_nothing_else():
    async with vendor.open(settings(BY_KEY)) as storage:
        assert storage.reader is not None
        assert (storage.signer, storage.issuer, storage.probe, storage.cutter) == (None, None, None, None)


@pytest.mark.parametrize("options", [OPTIONS, BY_KEY])
async def test_host_that_is_no_account_is_never_signed_for(options):
    prefix = parse_location("abfss://w@onelake.dfs.fabric.microsoft.com/lake")
    async with vendor.open(settings(options, prefix=prefix, sessions=FakeSessions())) as storage:
        assert storage.signer is None


async def test_entry_that_nobody_wrote_can_be_opened():
    async with vendor.open(settings({})) as storage:
        assert storage.reader is not None


async def test_two_storages_share_nothing():
    async with vendor.open(settings(OPTIONS)) as first, vendor.open(settings(OPTIONS)) as second:
        assert first.issuer is not second.issuer
        assert first.cutter is not second.cutter


def test_vendor_serves_azure_only():
    assert vendor.schemes == {"abfss"}


def test_faults_of_the_options_are_told():
    assert vendor.check({})


def test_directory_of_a_hierarchical_account_can_have_a_credential():
    assert vendor.check(OPTIONS) == []
    assert vendor.check_dir(OPTIONS, PREFIX) == []


def test_flat_account_and_blob_spelling_are_told_apart():
    flat = {**OPTIONS, "hierarchicalNamespace": False}
    spelled = parse_location("wasbs://tables@lakeaccount.blob.core.windows.net/shared")

    assert "without a hierarchical namespace" in vendor.check_dir(flat, PREFIX)[0]
    assert "blob endpoint" in vendor.check_dir(OPTIONS, spelled)[0]
    assert vendor.check_dir({**flat, "containerScope": "accept"}, spelled) == []


@each_case("namespace", [True, False, None])
@each_case("scheme", ["abfss", "wasbs"])
@each_case("identity", [OPTIONS["identity"], BY_KEY["identity"]])
def test_urls_are_signed_for_every_kind_of_account_and_spelling(identity, scheme, namespace):
    given = {"identity": identity, "hierarchicalNamespace": namespace}
    location = parse_location(f"{scheme}://tables@lakeaccount.blob.core.windows.net/shared")

    assert vendor.check_url(given, location) == []
    assert vendor.check_url({}, location) == []


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("onelake.dfs.fabric.microsoft.com", "OneLake"),
        ("lake.example.com", "does not name a storage account"),
    ],
)
def test_no_urls_are_signed_for_a_host_that_is_no_account(host, words):
    (fault,) = vendor.check_url(OPTIONS, parse_location(f"abfss://c@{host}/t"))

    assert words in fault


def test_account_key_is_refused_for_directories_in_clear_words():
    (fault,) = vendor.check_dir(BY_KEY, PREFIX)

    assert "another kind of identity" in fault
    assert "accessModes: [url]" in fault
