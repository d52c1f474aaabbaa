from __future__ import annotations

from typing import Any

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


DIR = {"historyShared": True, "accessModes": ["dir"]}


def dir_fault(path: str, location: str, storage: str = "lake") -> tuple[str, str]:
    table = f"s.d.t{path.partition('tables[')[2][0]}"
    words = f"table {table} cannot offer dir access on the storage {storage!r}: no credential for {location}"
    return f"shares[0].schemas[0].{path}", words


def test_dir_access_where_the_vendor_cannot_issue_is_a_fault_of_each_location():
    tables: list[dict[str, Any]] = [
        {"location": "s3://lake/refused/a", **DIR},
        {"location": "s3://lake/b", "auxiliaryLocations": ["s3://lake/c", "s3a://lake/refused/c"], **DIR},
        {"location": "s3://lake/refused/d", "accessModes": ["url"]},
        {"location": "s3://lake/refused/e"},
    ]

    assert found(config(*tables, storages=[storage("lake", "s3://lake")])) == [
        dir_fault("tables[0].location", "refused/a"),
        dir_fault("tables[1].auxiliaryLocations[1]", "refused/c"),
    ]


def test_dir_access_that_a_share_gives_is_checked_too():
    tables: list[dict[str, Any]] = [
        {"location": "s3://lake/refused/a"},
        {"location": "s3://lake/refused/b", "accessModes": ["url"]},
    ]
    shared = config(*tables, storages=[storage("lake", "s3://lake")], accessModes=["url", "dir"])

    assert found(shared) == [dir_fault("tables[0].location", "refused/a")]


def test_the_vendor_of_the_longest_prefix_is_asked():
    entries = [storage("lake", "s3://lake"), storage("inner", "s3://lake/refused")]

    assert found(config({"location": "s3://lake/refused/a", **DIR}, storages=entries)) == [
        dir_fault("tables[0].location", "refused/a", "inner")
    ]


def test_a_storage_that_is_not_in_order_is_not_asked_about_its_tables():
    entries = [
        storage("a", "s3://a", "fakee"),
        storage("b", "s3://b", regoin="eu"),
        storage("c", "/c/refused"),
    ]
    tables = [{"location": f"{entry['prefix']}/refused/t", **DIR} for entry in entries]

    assert [path for path, _ in found(config(*tables, storages=entries))] == [
        "storages[0].vendor",
        "storages[1].options",
        "storages[2].prefix",
    ]


def test_tables_that_no_storage_of_this_process_covers_are_another_process_concern():
    assert found(config({"location": "s3://lake/refused/a", **DIR}, storages=[])) == []


def test_what_is_said_of_a_whole_storage_is_told_once():
    tables = [{"location": f"/data/{name}", **DIR} for name in "abc"]
    (fault,) = check_storages(config(*tables, storages=[storage("disk", "/data", "local")]))
    assert fault.path == "shares[0].schemas[0].tables[0].location"
    assert fault.message.endswith(" (and at 2 more places)")


def test_a_local_storage_cannot_offer_dir_access():
    (fault,) = check_storages(
        config({"location": "/data/t", **DIR}, storages=[storage("disk", "/data", "local")])
    )
    assert fault.path == "shares[0].schemas[0].tables[0].location"
    assert "s.d.t0" in fault.message
    assert "'disk'" in fault.message


def test_installed_vendors_are_asked_by_default():
    assert check_storages(config("/data/t", storages=[storage("disk", "/data", "local")])) == []
