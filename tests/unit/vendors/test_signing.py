from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from gateway.adapters.vendors import GROUP, find_vendor
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from tests.cases import each_case
from tests.fakes.sessions import FakeSessions

KEYS = {"kind": "keys", "accessKeyId": "k1", "secretAccessKey": {"value": "s"}}
GCP_KEY = {"kind": "serviceAccount", "keyFile": "/none.json"}
# For each vendor a storage that signs.
ENTRIES: dict[str, tuple[str, dict[str, Any]]] = {
    "aws": ("s3://lake", {"region": "eu-west-1", "identity": KEYS}),
    "azure": ("abfss://lake@account.dfs.core.windows.net", {"identity": {"kind": "managedIdentity"}}),
    "gcp": ("gs://lake", {"identity": GCP_KEY}),
    "local": ("/lake", {}),
    "r2": ("s3://lake", {"accountId": "a1", "identity": KEYS}),
    "s3": ("s3://lake", {"profile": "minio", "endpoint": "https://s3.example", "identity": KEYS}),
}


def settings(name: str, *, signs: bool) -> StorageSettings:
    prefix, options = ENTRIES[name]
    return StorageSettings(
        name="lake",
        prefix=parse_location(prefix),
        options=options,
        public_url="https://x",
        url_keys=Keys(current=Key(id="k", secret=b"s" * 32)) if signs else None,
        sessions=FakeSessions() if signs else None,
    )


def test_every_vendor_signs():
    assert set(ENTRIES) == {point.name for point in entry_points(group=GROUP)}


@each_case("name", ENTRIES)
async def test_storage_has_a_signer_where_its_vendor_says_that_urls_can_be_signed(name):
    prefix, options = ENTRIES[name]
    vendor = find_vendor(name)

    assert vendor.check(options) == []
    assert vendor.check_url(options, parse_location(f"{prefix}/t")) == []
    async with vendor.open(settings(name, signs=True)) as storage:
        assert storage.signer is not None


@each_case("name", ENTRIES)
async def test_storage_of_a_process_that_does_not_sign_has_no_signer(name):
    async with find_vendor(name).open(settings(name, signs=False)) as storage:
        assert storage.signer is None
