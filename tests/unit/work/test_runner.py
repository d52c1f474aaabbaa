from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.domain.job import JobKind
from gateway.work.redaction import HIDDEN
from gateway.work.runner import Order, ProcessRunner, Progress, RunFailed
from tests.fakes import runner_script
from tests.waiting import eventually_async

COMMAND = [sys.executable, str(Path(runner_script.__file__))]
ACCESS = {"secret": "hunter2hunter2", "fs.s3a.bucket.lake.secret.key": "hunter2hunter2"}
ENV = {"PATH": os.environ["PATH"], "GIVEN": "yes"}


@pytest_asyncio.fixture
async def runner():
    runner = ProcessRunner(COMMAND, ENV)
    yield runner
    await runner.close()


def order(**plan: object) -> Order:
    return Order(kind=JobKind.VIEW, plan=plan, spark={"master": "local[1]", "conf": {}}, access=ACCESS)


async def run(runner: ProcessRunner, **plan: object):
    told: list[Progress] = []
    return await runner.run(order(**plan), told.append), told


async def test_result_and_progress_of_a_run_are_told(runner):
    result, told = await run(runner, echo={"rows": [1, "é"]})

    assert result["echo"] == {"rows": [1, "é"]}
    assert [(one.message, one.done, one.total) for one in told] == [("half", 1, 2)]


async def test_process_is_kept_for_the_next_run(runner):
    first, _ = await run(runner)
    second, _ = await run(runner)

    assert first["pid"] == second["pid"]


async def test_process_has_the_environment_that_it_is_given_and_no_other(runner):
    os.environ["OF_THE_TEST"] = "1"
    try:
        result, _ = await run(runner)
    finally:
        del os.environ["OF_THE_TEST"]

    assert "GIVEN" in result["env"]
    assert "OF_THE_TEST" not in result["env"]


@pytest.mark.parametrize("retry", [True, False])
async def test_error_of_a_run_is_told_without_secrets_and_leaves_the_process(runner, retry):
    first, _ = await run(runner)
    with pytest.raises(RunFailed) as raised:
        await run(runner, error="403 for {secret}", retry=retry)

    assert (raised.value.message, raised.value.retry) == (f"403 for {HIDDEN}", retry)
    assert (await run(runner))[0]["pid"] == first["pid"]


async def test_process_that_dies_is_told_of_and_replaced(runner, caplog):
    with pytest.raises(RunFailed, match="the runner died") as raised:
        await run(runner, complain="no space for {secret}", exit=3)

    assert raised.value.retry
    assert "hunter2" not in raised.value.message + caplog.text
    assert f"no space for {HIDDEN}" in caplog.text
    assert (await run(runner))[0]


async def test_what_a_recipient_is_does_not_come_back(runner, caplog):
    values = {"property_0": "emea", "property_1": None, "property_2": "eu"}
    with pytest.raises(RunFailed):
        await run(runner, parameters=values, complain="cannot cast 'emea' neurally", exit=3)

    assert f"cannot cast '{HIDDEN}' neurally" in caplog.text


@pytest.mark.parametrize("raw", ["no JSON\n", "[1]\n", '{"id": 1'])
async def test_process_that_does_not_speak_as_agreed_is_replaced(runner, raw):
    if raw.endswith("\n"):
        with pytest.raises(RunFailed, match="does not speak as agreed"):
            await run(runner, raw=raw)
    else:
        with pytest.raises(RunFailed, match="died"):
            await run(runner, raw=raw, exit=0)
    assert (await run(runner))[0]


async def test_process_that_was_killed_between_runs_is_replaced(runner):
    first, _ = await run(runner)
    assert runner.has_process
    os.kill(first["pid"], 9)
    await eventually_async(lambda: not runner.has_process)

    second, _ = await run(runner)
    assert second["pid"] != first["pid"]


async def test_cancelled_run_is_ended_with_all_that_it_has_started(runner, tmp_path):
    running = asyncio.create_task(run(runner, sleep=600, child=str(tmp_path / "child")))
    file = tmp_path / "child"
    child = int(await eventually_async(lambda: file.exists() and file.read_text()))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    # A killed process is gone once the kernel has scheduled it.
    await eventually_async(lambda: not _lives(child))
    assert (await run(runner))[0]


async def test_program_that_is_not_there_is_a_failure():
    with pytest.raises(RunFailed, match="cannot be started: No such file"):
        await run(ProcessRunner(["/no/such/program"], {}))


async def test_closing_twice_is_closing(runner):
    await run(runner)
    await runner.close()
    await runner.close()


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
