from __future__ import annotations

from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from vendors.local import vendor

PREFIX = parse_location("/data")
KEYS = Keys(current=Key(id="k1", secret=b"s" * 32))


async def test_local_storage_reads_and_signs_and_issues_nothing():
    settings = StorageSettings(name="disk", prefix=PREFIX, public_url="http://h", url_keys=KEYS)

    async with vendor.open(settings) as storage:
        assert (storage.name, storage.prefix) == ("disk", PREFIX)
        assert storage.reader is not None
        assert storage.signer is not None
        assert storage.issuer is None


async def test_process_without_url_keys_reads_only():
    async with vendor.open(StorageSettings(name="disk", prefix=PREFIX, public_url="http://h")) as storage:
        assert storage.reader is not None
        assert storage.signer is None


def test_local_vendor_serves_files_only():
    assert vendor.schemes == {"file"}
