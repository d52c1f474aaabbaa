"""The catalog tells of jobs that wait, also where no worker runs."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta

from gateway.adapters.job_queue import StateJobQueue
from gateway.bootstrap import _Process
from gateway.bootstrap.given import Given
from gateway.domain.job import JobKey, JobKind
from gateway.ports import utcnow
from tests.builders import Field, TableBuilder
from tests.unit.bootstrap.test_view_columns import config_of
from tests.waiting import eventually_async

VIEW = JobKey(kind=JobKind.VIEW, subject="v")


async def test_a_view_that_nobody_works_on_is_told_of_by_the_catalog(tmp_path):
    TableBuilder(tmp_path / "lake" / "t", (Field("a", "long"),)).append([{"a": 1}])
    long_ago = utcnow() - timedelta(hours=2)
    async with AsyncExitStack() as stack:
        process = _Process(config_of(tmp_path, "a"), Given(), stack)
        await process.open()
        asker = StateJobQueue(process._state, worker="x", lease=timedelta(seconds=30), clock=lambda: long_ago)
        await asker.request(VIEW, {}, long_ago)
        await process.start_services()

        def shown(name: str) -> float:
            return process._metrics.registry.get_sample_value(name, {"kind": "view"}) or 0

        await eventually_async(lambda: shown("sluice_jobs_queued"))
        assert shown("sluice_jobs_oldest_queued_seconds") >= 7200
