from __future__ import annotations

from pathlib import Path

from gateway.commands.demo import what_is_shared
from gateway.demo.s3_access import Keys
from gateway.demo.s3_sample import to_storage
from gateway.demo.sample import SampleCatalog

SAMPLE = SampleCatalog(directory=Path("/sample"))
STORAGE = to_storage("http://127.0.0.1:1", "us-east-1", Keys(access_key_id="a", secret_access_key="s"))


def test_without_s3_only_the_local_tables_are_shared():
    shared = what_is_shared(SAMPLE, None)
    assert [storage["vendor"] for storage in shared["storages"]] == ["local"]
    assert "lake" not in [schema["name"] for schema in shared["shares"][0]["schemas"]]


def test_with_s3_its_tables_stand_beside_the_local_ones():
    shared = what_is_shared(SAMPLE, STORAGE)
    assert [storage["vendor"] for storage in shared["storages"]] == ["local", "s3"]
    (share,) = shared["shares"]
    assert share["schemas"][:-1] == what_is_shared(SAMPLE, None)["shares"][0]["schemas"]
    assert share["schemas"][-1]["name"] == "lake"
