"""Segments shipped to an object store, and reports read from one."""

from __future__ import annotations

import secrets
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from gateway.bootstrap.landing import audit_directory, open_place, shipping
from gateway.commands.usage_report.access import AccessQuestion, who_could_read
from gateway.commands.usage_report.figures import Period, gather_figures
from gateway.commands.usage_report.tables import UsageReader
from gateway.config.schema import Config
from gateway.domain.location import parse_location
from tests.components import SEAWEEDFS
from tests.contract.test_issuing import keys, seaweedfs_options
from tests.fakes.usage_tables import DAY, NOON, anomaly, daily, grant, hourly, write_table

pytestmark = pytest.mark.component(SEAWEEDFS)

SEGMENT = "audit-a-1-20261117T120000000000Z-000001.jsonl"


@pytest.fixture
def place(seaweedfs) -> str:
    return f"s3://{seaweedfs.bucket}/{secrets.token_hex(6)}"


@pytest.fixture
def config(seaweedfs, place, tmp_path) -> Config:
    options = seaweedfs_options(seaweedfs) | {"identity": keys(seaweedfs.admin)}
    return Config(
        stateDir=str(tmp_path / "state"),
        usage={"landing": f"{place}/landing", "location": f"{place}/usage"},
        storages=[{"name": "usage", "prefix": place, "vendor": "s3", "options": options}],
        grace=timedelta(minutes=1),
    )


async def test_segments_of_two_processes_land_once(config):
    directory = audit_directory(config)
    directory.mkdir(parents=True)
    content = b"".join(b'{"id":"%d"}\n' % number for number in range(10_000))
    async with shipping(config, CollectorRegistry()), shipping(config, CollectorRegistry()):
        (directory / SEGMENT).write_bytes(content)
    assert list(directory.iterdir()) == []
    async with open_place(config, config.usage.landing, key="usage.landing") as landing:
        found = await landing.list("")
        assert [one.key for one in found] == [f"2026-11-17/{SEGMENT}"]
        entry = await landing.get(found[0].key)
        assert entry is not None
        assert entry.content == content


async def test_reports_are_read_from_the_store(config, tmp_path):
    tables = tmp_path / "usage"
    write_table(tables / "usage_daily", [daily(requests=3), daily("globex", day=DAY - timedelta(days=1))])
    write_table(tables / "usage_hourly", [hourly(8)])
    write_table(tables / "anomalies", [anomaly()])
    write_table(tables / "credential_ledger", [grant("s3://lake/orders", NOON, NOON + timedelta(hours=1))])
    async with open_place(config, config.usage.location, key="usage.location") as store:
        for file in (path for path in tables.rglob("*") if path.is_file()):
            assert await store.create(str(file.relative_to(tables)), file.read_bytes())
        reader = UsageReader(store=store, location=parse_location(config.usage.location))
        figures = await gather_figures(reader, Period(since=DAY - timedelta(days=7), until=DAY))
        question = AccessQuestion(place=parse_location("s3a://lake/orders/x"), at=NOON)
        found = await who_could_read(reader, question)
    assert (figures.totals["requests"], figures.totals["recipients"]) == (4, 2)
    assert [row["recipient"] for row in found] == ["acme"]
