"""Workers in processes of their own, ended at any moment."""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.adapters.job_queue import StateJobQueue
from gateway.domain.job import Job, JobKey, JobKind, JobState
from gateway.domain.location import parse_location
from gateway.ports import StateStore, utcnow
from tests.components import SEAWEEDFS
from tests.contract.test_issuing import keys, opened, seaweedfs_options
from tests.waiting import START_SECONDS, eventually_async

ROOT = Path(__file__).parents[2]
# Of jobs that are taken over from workers that died; and longer than a busy machine delays a renewal.
SHORT_LEASE, LEASE = 2.0, 60.0
DEADLINE = 600.0
KEYS = [JobKey(kind=JobKind.VIEW, subject=f"view-{number}") for number in range(10)]


class Fleet:
    """Worker processes on one configuration; those that end are for the test to replace."""

    def __init__(self, directory: Path, **config: object) -> None:
        self.lease = LEASE
        self._directory = directory
        self._config = directory / "server.yaml"
        usual = {
            "allowAnonymous": True,
            "stateDir": str(directory),
            "metrics": {"listen": "127.0.0.1:0"},
        }
        self._config.write_text(json.dumps(usual | config))
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, grace: float = 30.0) -> subprocess.Popen[bytes]:
        with (self._directory / "log").open("ab") as log:
            worker = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.integration.pipeline_worker"),
                    *(str(self._config), str(self.lease), str(grace)),
                ],
                cwd=ROOT,
                stderr=log,
            )
        self.workers.append(worker)
        return worker

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()
        self.workers.remove(worker)

    def runners(self) -> list[int]:
        """Return the processes that the workers run jobs in."""
        return [child for worker in self.workers for child in _children(worker.pid)]

    @property
    def runs(self) -> Counter[tuple[str, int]]:
        file = self._directory / "runs"
        lines = file.read_text().splitlines() if file.exists() else []
        return Counter((line.split()[0], int(line.split()[1])) for line in lines)

    @property
    def log(self) -> str:
        return (self._directory / "log").read_text()


@contextmanager
def _fleet(directory: Path, **config: object) -> Iterator[Fleet]:
    fleet = Fleet(directory, **config)
    try:
        yield fleet
    finally:
        for worker in list(fleet.workers):
            fleet.kill(worker)


@pytest.fixture
def fleet(tmp_path) -> Iterator[Fleet]:
    with _fleet(tmp_path) as fleet:
        yield fleet


@pytest_asyncio.fixture
async def state(tmp_path) -> AsyncIterator[StateStore]:
    async with opened("local", str(tmp_path), {}) as storage:
        assert storage.open_state is not None
        yield storage.open_state(parse_location(f"{tmp_path}/state"))


@pytest.fixture
def queue(state) -> StateJobQueue:
    return StateJobQueue(state, worker="test", lease=timedelta(seconds=LEASE), clock=utcnow)


async def test_workers_and_runners_that_are_killed_lose_and_double_nothing(fleet, state, queue):
    rng = random.Random(7)
    asked = [await queue.request(key, {"sleep": f"{rng.uniform(0.1, 0.8)}"}, utcnow()) for key in KEYS]
    fleet.lease = SHORT_LEASE
    for _ in range(3):
        fleet.start()
    kills = 0
    async with asyncio.timeout(DEADLINE):
        while kills < 8 or not await _all_done(queue, asked):
            await asyncio.sleep(rng.uniform(0.2, 1.2))
            if kills < 14:
                kills += await _kill_one(fleet, rng)
            ended = {JobState.FAILED} if kills >= 8 else {JobState.FAILED, JobState.DONE}
            asked = [await _asked_again(queue, job, ended) for job in asked]

    await _assert_each_took_effect_once(state, asked)
    assert set(fleet.runs) >= {(job.key.subject, job.sequence) for job in asked}


async def test_worker_that_is_asked_to_stop_gives_its_job_to_another_at_once(fleet, queue, tmp_path):
    job = await queue.request(KEYS[0], {"until": f"{tmp_path}/never"}, utcnow())
    first = fleet.start(grace=0.2)
    running = await _until(queue, job.key, lambda job: job.state is JobState.RUNNING)
    first.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(first.wait, 90) == 0
    given_back = await queue.find(job.key)
    assert (given_back.state, given_back.attempts) == (JobState.QUEUED, 0)

    fleet.start()
    taken = await _until(queue, job.key, lambda job: job.state is JobState.RUNNING)
    assert taken.worker != running.worker


async def test_worker_that_is_asked_to_stop_lets_its_job_finish(fleet, queue, tmp_path):
    job = await queue.request(KEYS[0], {"until": f"{tmp_path}/finish"}, utcnow())
    worker = fleet.start(grace=DEADLINE)
    await _until(queue, job.key, lambda job: job.state is JobState.RUNNING)
    worker.send_signal(signal.SIGTERM)
    await eventually_async(lambda: "stopping: the job under way may finish" in fleet.log)
    (tmp_path / "finish").touch()

    assert await asyncio.to_thread(worker.wait, 90) == 0
    assert (await queue.find(job.key)).state is JobState.DONE


async def test_runner_dies_with_its_worker(fleet, queue, tmp_path):
    await queue.request(KEYS[0], {"until": f"{tmp_path}/never"}, utcnow())
    worker = fleet.start()
    runners = await eventually_async(fleet.runners, seconds=START_SECONDS)
    fleet.kill(worker)

    await eventually_async(lambda: not any(_lives(pid) for pid in runners))


@pytest.mark.component(SEAWEEDFS)
async def test_state_of_a_fleet_may_lie_in_an_object_store(seaweedfs, tmp_path):
    options = seaweedfs_options(seaweedfs) | {"identity": keys(seaweedfs.admin)}
    prefix = f"s3://{seaweedfs.make_bucket('state')}"
    place = f"{prefix}/{secrets.token_hex(4)}"
    entry = {"name": "state", "prefix": prefix, "vendor": "s3", "options": options}
    async with opened("s3", prefix, options) as storage:
        assert storage.open_state is not None
        state = storage.open_state(parse_location(place))
        queue = StateJobQueue(state, worker="test", lease=timedelta(seconds=LEASE), clock=utcnow)
        until = {"until": f"{tmp_path}/finish"}
        asked = [await queue.request(key, until, utcnow()) for key in KEYS[:3]]
        with _fleet(tmp_path, storages=[entry], state={"location": place}) as fleet:
            fleet.lease = SHORT_LEASE
            for _ in range(2):
                fleet.start()
            await eventually_async(lambda: len(fleet.runners()) == 2, seconds=START_SECONDS)
            fleet.kill(fleet.workers[0])
            (tmp_path / "finish").touch()
            async with asyncio.timeout(DEADLINE):
                while not await _all_done(queue, asked):
                    await asyncio.sleep(0.3)
                    asked = [await _asked_again(queue, job, {JobState.FAILED}) for job in asked]
        await _assert_each_took_effect_once(state, asked)
        secret = seaweedfs.admin.secret_access_key
        assert secret not in fleet.log


async def _kill_one(fleet: Fleet, rng: random.Random) -> int:
    runners = fleet.runners()
    if runners and rng.random() < 0.4:
        os.kill(rng.choice(runners), signal.SIGKILL)
        return 1
    fleet.kill(rng.choice(fleet.workers))
    fleet.start()
    return 1


async def _all_done(queue: StateJobQueue, asked: list[Job]) -> bool:
    found = [await _find(queue, job.key) for job in asked]
    return all(now.done_sequence >= job.sequence for now, job in zip(found, asked, strict=True))


async def _asked_again(queue: StateJobQueue, job: Job, states: Collection[JobState]) -> Job:
    """Request a job again if it is in one of the states."""
    now = await _find(queue, job.key)
    if now.state in states:
        return await queue.request(job.key, job.parameters, utcnow())
    return job


async def _assert_each_took_effect_once(state: StateStore, jobs: list[Job]) -> None:
    for job in jobs:
        entry = await state.get(f"views/{job.key.subject}.json")
        assert entry is not None
        effects = json.loads(entry.content)
        assert job.sequence in effects
        assert len(effects) == len(set(effects))


async def _until(queue: StateJobQueue, key: JobKey, is_so) -> Job:
    async def found() -> Job | None:
        job = await _find(queue, key)
        return job if is_so(job) else None

    return await eventually_async(found, seconds=DEADLINE, pause=0.05)


async def _find(queue: StateJobQueue, key: JobKey) -> Job:
    job = await queue.find(key)
    assert job is not None
    return job


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
