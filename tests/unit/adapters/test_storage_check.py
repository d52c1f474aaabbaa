from __future__ import annotations

from gateway.adapters.storage_check import check_storages
from gateway.adapters.vendors import VendorNotFound
from gateway.ports import Vendor
from tests.fakes.vendor import FakeVendor
from tests.unit.adapters.storage_configs import config, storage


def find(name: str) -> Vendor:
    if name == "fake":
        return FakeVendor("s3")
    if name == "local":
        return FakeVendor("file")
    raise VendorNotFound(f"there is no vendor {name!r}", suggestion="fake")


def found(config) -> list[tuple[str, str]]:
    return [(fault.path, fault.message) for fault in check_storages(config, find)]


def test_entries_that_their_vendors_accept_have_no_fault():
    entries = [storage("lake", "s3://lake/a", region="eu"), storage("disk", "/data", "local")]

    assert found(config("/data/t", storages=entries)) == []


def test_every_fault_of_the_entries_is_reported_at_once():
    entries = [
        storage("lake", "s3://a", "fakee"),
        storage("disk", "/data"),
        storage("other", "s3a://a/", regoin="eu", fails="no"),
    ]

    faults = check_storages(config(storages=entries), find)

    assert [(fault.path, fault.suggestion) for fault in faults] == [
        ("storages[0].vendor", "fake"),
        ("storages[1].prefix", ""),
        ("storages[2].options", ""),
    ]
    assert (faults[1].message, faults[1].found) == (
        "the vendor 'fake' serves locations of the scheme s3",
        "'file'",
    )
    assert faults[2].message == "unknown option 'regoin'"


def test_without_storages_a_missing_vendor_is_reported_once_where_it_is_needed():
    assert found(config("/data/t", "gs://lake/a", "gs://lake/b")) == [
        ("shares[0].schemas[0].tables[1].location", "there is no vendor 'gcp'")
    ]


def test_installed_vendors_are_asked_by_default():
    assert check_storages(config("/data/t", storages=[storage("disk", "/data", "local")])) == []
