"""Usage on S3 from end to end: shipped there, counted there through S3A, and reported from there."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.bootstrap.landing import audit_directory, open_place, shipping
from gateway.commands.usage_report.figures import Figures, Period, gather_figures
from gateway.commands.usage_report.tables import UsageReader
from gateway.config.schema import Config
from gateway.domain.job import Job, JobKey, JobKind, JobState
from gateway.domain.location import parse_location
from gateway.work.places import SparkPlaces
from gateway.work.usage import UsageCraft
from pipeline.access import Access
from pipeline.jobs.usage import run
from tests.components import SEAWEEDFS, SPARK_PIPELINE
from tests.contract.test_issuing import keys, seaweedfs_options
from tests.fakes.audit_lines import START, Story, parsed
from tests.oracles import usage as oracle
from tests.spark import SETTINGS

pytestmark = [pytest.mark.component(SPARK_PIPELINE), pytest.mark.component(SEAWEEDFS)]


@pytest.fixture
def config(seaweedfs, tmp_path) -> Config:
    place = f"s3://{seaweedfs.bucket}/{secrets.token_hex(6)}"
    options = seaweedfs_options(seaweedfs) | {"identity": keys(seaweedfs.admin)}
    return Config(
        stateDir=str(tmp_path / "state"),
        usage={"landing": f"{place}/landing", "location": f"{place}/usage"},
        storages=[{"name": "usage", "prefix": place, "vendor": "s3", "options": options}],
        grace=timedelta(seconds=60),
    )


def test_usage_is_counted_where_it_landed(spark, config):
    lines = Story(21).lines(25)
    asyncio.run(ship(config, lines))
    body, access = asyncio.run(planned(config))
    result = run(Access(spark, SETTINGS).session_with(access), body, lambda *_: None)
    assert (result["events"], result["quarantined"]) == (len(lines), 0)
    figures = asyncio.run(reported(config))
    expected = oracle.usage_daily(parsed(lines)).values()
    for name in ("requests", "files", "bytes_granted", "credentials", "denials", "failures"):
        assert figures.totals[name] == sum(row[name] for row in expected), name


async def ship(config: Config, lines: list[bytes]) -> None:
    directory = audit_directory(config)
    directory.mkdir(parents=True)
    segment = directory / "audit-a-1-20261116T060000000000Z-000001.jsonl"
    segment.write_bytes(b"".join(line + b"\n" for line in lines))
    async with shipping(config, CollectorRegistry()):
        pass
    assert not segment.exists()


async def planned(config: Config) -> tuple[Any, dict[str, str]]:
    async with OpenStorages(config, StorageProcess(public_url="")) as storages:
        places = SparkPlaces(storages)
        key = JobKey(kind=JobKind.USAGE)
        job = Job(key=key, sequence=1, state=JobState.RUNNING, requested_at=datetime.now(UTC))
        plan = await UsageCraft(config.usage, places).plan(job)
        assert plan is not None
        return plan.body, await places.settings(plan.locations)


async def reported(config: Config) -> Figures:
    async with open_place(config, config.usage.location, key="usage.location") as store:
        reader = UsageReader(store=store, location=parse_location(config.usage.location))
        since = START.date() - timedelta(days=1)
        return await gather_figures(reader, Period(since=since, until=since + timedelta(days=5)))
