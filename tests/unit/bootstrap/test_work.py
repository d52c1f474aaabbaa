from __future__ import annotations

import asyncio
import sys
import threading
from datetime import timedelta
from pathlib import Path

from gateway.bootstrap.craft_parts import CraftParts
from gateway.bootstrap.work import WorkGiven, open_work
from gateway.config.schema import Config
from gateway.domain.job import JobKey, JobKind, JobState
from gateway.ports import utcnow
from gateway.work.craft import Plan, Scheduled, Wanted
from gateway.work.runner import ProcessRunner
from tests.fakes import runner_script
from tests.fakes.craft import FakeCraft

COMMAND = (sys.executable, str(Path(runner_script.__file__)))
VIEW = JobKey(kind=JobKind.VIEW, subject="orders")


def config(directory: object, **more: object) -> Config:
    return Config(stateDir=str(directory), storages=(), **more)


async def test_worker_is_made_of_what_the_configuration_says(tmp_path):
    craft = FakeCraft()
    craft.next_plan = None
    built: list[CraftParts] = []

    def build(parts: CraftParts):
        built.append(parts)
        return {JobKind.VIEW: craft}

    spark = {"master": "local[1]", "conf": {"spark.driver.memory": "1g"}}
    given = WorkGiven(env={"PATH": "/bin"}, build=build)
    async with open_work(config(tmp_path, pipeline={"spark": spark, "leaseTime": "7s"}), given) as work:
        craft.schedules = [Scheduled(wanted=Wanted(key=VIEW), every=timedelta(hours=1))]
        await work.worker.drain(asyncio.Event(), asyncio.Event())
        job = await work.queue.find(VIEW)
        assert await work.ready() == {"state": "ok"}

    assert job is not None
    assert job.state is JobState.DONE
    assert work.shop.spark == {
        "master": "local[1]",
        "remote": "",
        "jars": "",
        "conf": {"spark.driver.memory": "1g"},
    }
    assert work.shop.lease_time == timedelta(seconds=7)
    assert isinstance(work.shop.runner, ProcessRunner)
    assert built[0].state is not None
    assert (tmp_path / "state" / "jobs" / "view").is_dir()


async def test_run_gets_the_environment_without_the_gateways_own_settings(tmp_path):
    craft = FakeCraft()
    # Without LC_ALL, Python adds LC_CTYPE.
    env = {"SLUICE_KEYS_SECRET": "no", "PATH": "/bin", "LC_ALL": "C"}
    given = WorkGiven(env=env, runner=COMMAND, build=lambda _: {JobKind.VIEW: craft})
    async with open_work(config(tmp_path), given) as work:
        await work.queue.request(VIEW, {}, utcnow())
        await work.worker.drain(asyncio.Event(), asyncio.Event())

    ((_, result),) = craft.published
    assert result["env"] == {"PATH": "/bin", "LC_ALL": "C"}


async def test_changed_configuration_is_taken_up_by_new_crafts(tmp_path):
    seen: list[Config] = []

    threads: list[threading.Thread] = []

    def build(parts: CraftParts):
        seen.append(parts.config)
        threads.append(threading.current_thread())
        return {JobKind.VIEW: FakeCraft()}

    changed = config(tmp_path, recipients=[{"name": "acme"}])
    async with open_work(config(tmp_path), WorkGiven(build=build)) as work:
        first = work.shop.crafts
        generation = await work.apply(changed)
        assert work.shop.crafts is not first
        assert await work.apply(changed) == generation

    assert seen[1:] == [changed, changed]
    assert threading.current_thread() not in threads[1:]


async def test_worker_shows_nothing_of_a_plan_in_its_log(tmp_path, caplog):
    caplog.set_level("DEBUG")
    craft = FakeCraft()
    craft.next_plan = Plan(body={"parameters": {"property_0": "a secret of a recipient"}})
    given = WorkGiven(runner=["/no/such/program"], build=lambda _: {JobKind.VIEW: craft})
    async with open_work(config(tmp_path), given) as work:
        await work.queue.request(VIEW, {}, utcnow())
        await work.worker.drain(asyncio.Event(), asyncio.Event())
        job = await work.queue.find(VIEW)

    assert job is not None
    assert job.error == "the runner cannot be started: No such file or directory"
    assert "a secret of a recipient" not in caplog.text
