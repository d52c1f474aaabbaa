from __future__ import annotations

import pytest

from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from vendors.s3 import vendor

LAKE = parse_location("s3://lake")
OPTIONS = {
    "profile": "minio",
    "endpoint": "http://127.0.0.1:9",
    "identity": {"kind": "keys", "accessKeyId": "k", "secretAccessKey": {"value": "s"}},
}


async def test_a_storage_reads_issues_probes_and_says_how_to_cut_off():
    settings = StorageSettings(name="lake", prefix=LAKE, options=OPTIONS, public_url="https://x")
    async with vendor.open(settings) as storage:
        assert (storage.name, storage.prefix) == ("lake", LAKE)
        assert storage.reader is not None
        assert storage.issuer is not None
        assert storage.issuer.names_recipients
        assert storage.probe is not None
        assert storage.cutter is not None


@pytest.mark.parametrize("accepted", [True, False])
async def test_a_storage_tells_whether_case_variants_were_accepted(accepted):
    options = {**OPTIONS, "acceptCaseVariants": accepted}
    settings = StorageSettings(name="lake", prefix=LAKE, options=options, public_url="https://x")
    async with vendor.open(settings) as storage:
        assert storage.folds_case is accepted


def test_the_vendor_serves_s3_and_checks_its_options():
    assert vendor.schemes == {"s3"}
    assert vendor.check(OPTIONS) == []
    assert vendor.check({}) != []
    assert vendor.check_dir(OPTIONS, parse_location("s3://lake/t")) == []
