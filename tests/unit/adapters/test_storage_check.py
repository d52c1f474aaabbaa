from __future__ import annotations

import pytest

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


def test_storages_that_cover_all_tables_have_no_fault():
    entries = [storage("lake", "s3://lake/a", region="eu"), storage("disk", "/data", "local")]
    table = {"location": "s3a://lake/a/t", "auxiliaryLocations": ["file:///data/x"]}

    assert found(config(table, "/data/t", storages=entries)) == []


def test_every_fault_of_the_entries_is_reported_at_once():
    entries = [
        storage("lake", "s3://lake/../x"),
        storage("lake", "s3://a", "fakee"),
        storage("disk", "/data"),
        storage("other", "s3a://a/", regoin="eu"),
    ]

    faults = check_storages(config(storages=entries), find)

    assert [(fault.path, fault.suggestion) for fault in faults] == [
        ("storages[0].prefix", ""),
        ("storages[1].vendor", "fake"),
        ("storages[2].prefix", ""),
        ("storages[3].options", ""),
        ("storages[1].name", ""),
        ("storages[3].prefix", ""),
    ]
    assert "serves locations of the scheme s3, found 'file'" in str(faults[2])
    assert "storages[1] has this prefix already" in str(faults[5])


def test_table_that_no_storage_covers_is_reported_with_each_of_its_locations():
    entries = [storage("lake", "s3://lake/a")]
    table = {"location": "s3://lake/ab/t", "auxiliaryLocations": ["s3://lake/a/t", "/data/t"]}

    assert [path for path, _ in found(config("s3://lake/a/t", table, storages=entries))] == [
        "shares[0].schemas[0].tables[1].location",
        "shares[0].schemas[0].tables[1].auxiliaryLocations[1]",
    ]


def test_empty_list_of_storages_covers_nothing():
    assert [path for path, _ in found(config("/data/t", storages=[]))] == [
        "shares[0].schemas[0].tables[0].location"
    ]


def test_without_storages_a_missing_vendor_is_reported_once_where_it_is_needed():
    assert found(config("/data/t", "gs://lake/a", "gs://lake/b")) == [
        ("shares[0].schemas[0].tables[1].location", "there is no vendor 'gcp'")
    ]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        (
            config({"location": "/t", "accessModes": ["url", "dir"]}),
            "shares[0].schemas[0].tables[0].accessModes",
        ),
        (config("/t", accessModes=["dir"]), "shares[0].accessModes"),
    ],
    ids=["table", "share"],
)
def test_without_storages_dir_access_is_refused(config, path):
    ((where, message),) = found(config)

    assert where == path
    assert "dir access needs a storages entry" in message


def test_installed_vendors_are_asked_by_default():
    assert check_storages(config("/data/t", storages=[storage("disk", "/data", "local")])) == []
