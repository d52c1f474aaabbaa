from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gateway.bootstrap.landing import audit_directory, open_place, shipping
from gateway.config.faults import ConfigError
from gateway.config.schema import Config

SEGMENT = "audit-a-1-20261117T120000000000Z-000001.jsonl"


def config_of(tmp_path: Path, **usage: str) -> Config:
    return Config(stateDir=str(tmp_path / "state"), usage=usage, grace=timedelta(seconds=5))


async def test_directory_needs_no_storage(tmp_path):
    config = config_of(tmp_path)
    async with open_place(config, str(tmp_path / "landing"), key="usage.landing") as store:
        assert await store.create("a/b", b"content")
    assert (tmp_path / "landing" / "a" / "b").read_bytes() == b"content"


async def test_place_that_no_storage_covers_names_the_key(tmp_path):
    with pytest.raises(ConfigError, match=r"usage\.landing: no storage covers s3://audit/landing"):
        async with open_place(config_of(tmp_path), "s3://audit/landing", key="usage.landing"):
            pass


async def test_segments_stay_where_nothing_says_where_they_land(tmp_path):
    config = config_of(tmp_path)
    put(audit_directory(config))
    async with shipping(config, CollectorRegistry()) as running:
        assert running is None
    assert (audit_directory(config) / SEGMENT).exists()


async def test_segments_land_by_the_end_and_are_counted(tmp_path):
    config, registry = config_of(tmp_path, landing=str(tmp_path / "landing")), CollectorRegistry()
    async with shipping(config, registry):
        put(audit_directory(config))
    assert [path.name for path in (tmp_path / "landing" / "2026-11-17").iterdir()] == [SEGMENT]
    assert list(audit_directory(config).iterdir()) == []
    assert registry.get_sample_value("sluice_audit_shipped_segments_total") == 1
    assert registry.get_sample_value("sluice_audit_shipped_bytes_total") == 3
    assert registry.get_sample_value("sluice_audit_shipping_backlog_bytes") == 0
    assert registry.get_sample_value("sluice_audit_shipping_backlog_age_seconds") == 0
    assert registry.get_sample_value("sluice_audit_shipping_failures_total", {"reason": "conflict"}) == 0


def put(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / SEGMENT).write_bytes(b"{}\n")
