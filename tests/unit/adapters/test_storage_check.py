from __future__ import annotations

from typing import Any

import pytest

from gateway.adapters.storage_check import check_storages, warn_of_storages
from gateway.adapters.vendors import VendorNotFound
from gateway.config.broken import Broken
from gateway.config.path import Path
from gateway.config.schema import Config, CredentialsConfig, ServiceName
from gateway.ports import Vendor
from tests.cases import each_case
from tests.fakes.vendor import FakeVendor
from tests.unit.adapters.storage_configs import config, storage


def find(name: str) -> Vendor:
    if name == "fake":
        return FakeVendor("s3")
    if name == "aws":
        return FakeVendor("s3", unsigned="there is nobody to sign as; set accessModes: [dir]")
    if name == "local":
        return FakeVendor("file")
    raise VendorNotFound(f"there is no vendor {name!r}", suggestion="fake")


def found(config: Config, *broken: Path) -> list[tuple[str, str]]:
    return [(fault.path, fault.message) for fault in check_storages(config, find, Broken(broken))]


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
        ("storages[2].options.regoin", "region"),
    ]
    assert (faults[1].message, faults[1].found) == (
        "the vendor 'fake' serves locations of the scheme s3",
        "'file'",
    )
    assert faults[2].message == "unknown option"


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
        "storages[1].options.regoin",
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


TABLES = "shares[0].schemas[0].tables"


def test_url_access_where_nothing_can_be_signed_is_a_fault_told_once_for_each_storage():
    tables: list[str | dict[str, Any]] = [
        "s3://lake/a",
        {"location": "s3://lake/b", "accessModes": ["url", "dir"], "historyShared": True},
        {"location": "s3://lake/c", **DIR},
        "s3://fine/a",
    ]
    entries = [storage("lake", "s3://lake", "aws"), storage("fine", "s3://fine")]

    assert found(config(*tables, storages=entries)) == [
        (
            f"{TABLES}[0].location",
            "table s.d.t0 cannot offer url access on the storage 'lake': there is nobody to sign as; "
            "set accessModes: [dir] (and at 1 more place)",
        )
    ]


def test_what_options_allow_is_not_told_while_something_is_wrong_with_them():
    entries = [storage("lake", "s3://lake", "aws", regoin="eu")]

    assert [path for path, _ in found(config("s3://lake/a", storages=entries))] == [
        "storages[0].options.regoin"
    ]


def test_without_storages_url_access_where_nothing_can_be_signed_is_a_fault():
    assert found(config("/data/t", "s3://lake/a", "s3://lake/b")) == [
        (
            f"{TABLES}[1].location",
            "table s.d.t1 cannot offer url access: there is nobody to sign as; "
            "set accessModes: [dir] (and at 1 more place)",
        )
    ]


def test_without_storages_and_without_presign_signing_is_another_process_concern():
    alone = config("s3://lake/a")
    alone = alone.model_copy(
        update={"services": alone.services.model_copy(update={"run": (ServiceName.CATALOG,)})}
    )

    assert found(alone) == []


def lasting(own: str | None, *tables: dict[str, Any], **credentials: str) -> Config:
    entry = {**storage("lake", "s3://lake"), "credentialLife": own}
    shared = config(*tables, storages=[entry])
    return shared.model_copy(update={"credentials": CredentialsConfig.model_validate(credentials)})


DIR_TABLE = {"location": "s3://lake/a", **DIR}


@each_case(
    ("shared", "faults"),
    [
        (lasting("2h", DIR_TABLE), []),
        (
            lasting("3h", DIR_TABLE, life="1h"),
            [("storages[0].credentialLife", "credentials live two hours at most")],
        ),
        (
            lasting(None, DIR_TABLE, life="3h"),
            [("credentials.life", "for the storage 'lake': credentials live two hours at most")],
        ),
        (lasting("3h", {"location": "s3://lake/a"}), []),
        # Reported by the configuration's own checks.
        (lasting("4d", DIR_TABLE), []),
    ],
    ids=["fine", "of the storage", "of all storages", "no dir access", "no life at all"],
)
def test_a_life_that_the_vendor_never_gives_is_a_fault_where_it_is_set(shared, faults):
    assert found(shared) == faults


@pytest.mark.parametrize("name", ["minio", "SeaweedFS", "ceph"])
def test_a_store_that_is_no_vendor_is_told_its_profile(name):
    ((path, message),) = found(config(storages=[storage("lake", "s3://lake", name)]))

    assert path == "storages[0].vendor"
    assert message == f"there is no vendor {name!r}: set vendor: s3, with options.profile: {name.lower()}"


def test_a_cloud_that_is_called_otherwise_is_suggested():
    (fault,) = check_storages(config(storages=[storage("lake", "gs://lake", "gcs")]), find)

    assert fault.suggestion == "gcp"


BOTH = config(
    "s3://lake/a",
    {"location": "s3://other/refused", **DIR},
    storages=[storage("lake", "s3://lake", "aws"), storage("other", "s3://other", regoin="eu")],
)
URL_FAULT = f"{TABLES}[0].location"
OPTION_FAULT = "storages[1].options.regoin"


@each_case(
    ("broken", "paths"),
    [
        (("port",), [OPTION_FAULT, URL_FAULT]),
        (("storages",), []),
        (("storages", 0), [OPTION_FAULT]),
        (("storages", 0, "vendor"), [OPTION_FAULT]),
        (("storages", 1, "vendor"), [URL_FAULT]),
        (("storages", 1, "prefix"), [OPTION_FAULT]),
        (("storages", 1, "options"), [URL_FAULT]),
        (("storages", 1, "credentialLife"), [OPTION_FAULT, URL_FAULT]),
        (("shares",), [OPTION_FAULT]),
        (("shares", 0, "accessModes"), [OPTION_FAULT]),
        (("shares", 0, "schemas", 0, "tables", 0, "location"), [OPTION_FAULT]),
        (("shares", 0, "schemas", 0, "tables", 0, "accessModes", 1), [OPTION_FAULT]),
        (("shares", 0, "schemas", 0, "tables", 1), [OPTION_FAULT, URL_FAULT]),
    ],
)
def test_what_follows_from_what_is_broken_is_not_reported(broken, paths):
    assert [path for path, _ in found(BOTH, broken)] == paths


def test_options_under_a_key_that_nobody_knows_are_not_missing():
    entries = [storage("lake", "s3://lake", "s3")]

    faults = check_storages(config(storages=entries), broken=Broken([("storages", 0, "setings")]))

    assert faults == []


def test_locations_that_are_none_are_passed_over():
    entries = [storage("lake", "s3://lake", "aws"), storage("other", "ftp://other")]

    assert found(config("no location", "s3://lake/a", storages=entries)) == [
        (
            f"{TABLES}[1].location",
            "table s.d.t1 cannot offer url access on the storage 'lake': there is nobody to sign as; "
            "set accessModes: [dir]",
        )
    ]


def test_files_that_cannot_be_read_here_are_warned_of():
    entries = [storage("a", "s3://a"), storage("b", "s3://b", file="/gone")]

    assert warn_of_storages(config(storages=entries), find) == ["storages[1].options.file: cannot be read"]
    assert warn_of_storages(config("/data/t"), find) == []
