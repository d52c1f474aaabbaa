"""The catalog tells of jobs that wait, also where no worker runs."""

from __future__ import annotations

from datetime import timedelta

from gateway.adapters.job_queue import StateJobQueue
from gateway.adapters.state import open_state
from gateway.domain.job import JobKey, JobKind
from gateway.ports import utcnow
from tests.builders import Field, TableBuilder
from tests.fakes.storages import FakeStorages
from tests.unit.bootstrap.process import run_process, view_config
from tests.waiting import eventually_async

VIEW = JobKey(kind=JobKind.VIEW, subject="v")


async def test_a_view_that_nobody_works_on_is_told_of_by_the_catalog(tmp_path):
    TableBuilder(tmp_path / "lake" / "t", (Field("a", "long"),)).append([{"a": 1}])
    config = view_config(tmp_path, "a")
    long_ago = utcnow() - timedelta(hours=2)
    async with open_state(config, FakeStorages()) as state:
        asker = StateJobQueue(state, worker="x", lease=timedelta(seconds=30), clock=lambda: long_ago)
        await asker.request(VIEW, {}, long_ago)

    async with run_process(config, tmp_path) as process:
        await eventually_async(lambda: process.metric("sluice_jobs_queued", kind="view"))
        assert process.metric("sluice_jobs_oldest_queued_seconds", kind="view") >= 7200
