from __future__ import annotations

from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from vendors.azure import vendor
from vendors.azure.issuer import AzureIssuer

PREFIX = parse_location("abfss://tables@lakeaccount.dfs.core.windows.net/shared")
OPTIONS = {"identity": {"kind": "managedIdentity"}, "hierarchicalNamespace": True}


def settings(options) -> StorageSettings:
    return StorageSettings(name="lake", prefix=PREFIX, options=options, public_url="")


async def test_storage_reads_issues_proves_and_cuts_off():
    async with vendor.open(settings(OPTIONS)) as storage:
        assert (storage.name, storage.prefix) == ("lake", PREFIX)
        assert storage.reader is not None
        assert isinstance(storage.issuer, AzureIssuer)
        assert storage.probe is not None
        assert storage.cutter is not None
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
