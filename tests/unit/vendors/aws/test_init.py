from __future__ import annotations

from typing import Any

from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from vendors.aws import vendor

LAKE = parse_location("s3://lake/sales")
OPTIONS = {
    "region": "eu-west-1",
    "identity": {"kind": "chain"},
    "role": {"arn": "arn:aws:iam::123456789012:role/vended"},
}


def settings(options: dict[str, Any]) -> StorageSettings:
    return StorageSettings(name="lake", prefix=LAKE, options=options, public_url="https://x")


async def test_a_storage_reads_issues_probes_and_cuts_off():
    async with vendor.open(settings(OPTIONS)) as storage:
        assert (storage.name, storage.prefix) == ("lake", LAKE)
        assert storage.reader is not None
        assert storage.issuer is not None
        assert storage.issuer.names_recipients
        assert storage.probe is not None
        assert storage.cutter is not None


async def test_without_a_role_nothing_is_issued():
    async with vendor.open(settings({"region": "eu-west-1", "identity": {"kind": "chain"}})) as storage:
        assert storage.reader is not None
        assert storage.issuer is None
        assert storage.cutter is None


async def test_a_file_without_storages_opens_without_options():
    async with vendor.open(settings({})) as storage:
        assert storage.reader is not None
        assert storage.issuer is None


def test_the_vendor_serves_s3_and_checks_its_options():
    assert vendor.schemes == {"s3"}
    assert vendor.check(OPTIONS) == []
    assert vendor.check({}) != []
    assert vendor.check_dir(OPTIONS, LAKE) == []
