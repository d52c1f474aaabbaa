"""A supervisor and workers that do as a test wants."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from gateway.adapters.shared_rate import new_memory
from gateway.bootstrap.supervisor import Supervisor
from tests.waiting import eventually_async

# What every worker does first: the last argument names the memory, and the link.
HEAD = """
import os, signal, sys, time
link = int(sys.argv[-1].split(",")[1])
def report(text): os.write(link, text.encode() + b"\\n")
def on(number, handler): signal.signal(number, lambda *_: handler())
"""
SERVE = """
on(signal.SIGTERM, sys.exit)
report('{"services": {"catalog": "ok"}}')
while True: signal.pause()
"""

Start = Callable[..., Supervisor]


@pytest.fixture
def memory() -> Iterator[int]:
    descriptor = new_memory()
    yield descriptor
    os.close(descriptor)


@pytest.fixture
async def start(memory) -> Start:
    def supervisor(script: str, *arguments: object, silence: timedelta = timedelta(seconds=30)) -> Supervisor:
        command = [sys.executable, "-c", HEAD + script, *map(str, arguments)]
        return Supervisor(command=command, env=dict(os.environ), sockets=(), buckets=memory, silence=silence)

    return supervisor


@asynccontextmanager
async def kept(supervisor: Supervisor, workers: int) -> AsyncIterator[asyncio.Task[int]]:
    """Run workers while a test looks at them."""
    task = asyncio.create_task(supervisor.run(workers))
    try:
        async with asyncio.timeout(120):
            yield task
    finally:
        supervisor.stop()
        await task


async def says(supervisor: Supervisor, service: str, state: str | None = None) -> bool:
    """True if the readiness has a service, in a state if one is given."""
    services = await supervisor.readiness()
    return service in services and state in (None, services[service])


def serving(supervisor: Supervisor) -> float | None:
    return supervisor.metrics.registry.get_sample_value("sluice_workers")


def restarts(supervisor: Supervisor) -> float:
    return supervisor.metrics.registry.get_sample_value("sluice_worker_restarts_total") or 0


async def test_asked_to_stop_it_ends_when_all_workers_have(start):
    supervisor = start(SERVE)
    async with kept(supervisor, 3) as task:
        await eventually_async(lambda: serving(supervisor) == 3)
        supervisor.stop()

        assert await task == 0
        assert serving(supervisor) == restarts(supervisor) == 0


async def test_workers_that_end_as_soon_as_they_start_end_it_with_status_1(start, caplog):
    supervisor = start("sys.exit(3)")
    async with kept(supervisor, 2) as task:
        assert await task == 1

    assert "ended with status 3" in caplog.text
    assert "giving up" in caplog.text


async def test_a_command_that_cannot_be_run_ends_it_too(memory, caplog):
    supervisor = Supervisor(command=["/nowhere/at/all"], env={}, sockets=(), buckets=memory)
    async with kept(supervisor, 1) as task:
        assert await task == 1

    assert "cannot be started: No such file" in caplog.text


async def test_while_another_serves_a_worker_that_cannot_start_is_tried_again(start, tmp_path):
    first_alone = """
try: os.mkdir(sys.argv[1])
except FileExistsError: sys.exit(1)
"""
    supervisor = start(first_alone + SERVE, tmp_path / "taken")
    async with kept(supervisor, 2) as task:
        await eventually_async(lambda: restarts(supervisor) > 5)
        assert serving(supervisor) == 1
        assert not task.done()

        (tmp_path / "taken").rmdir()
        await eventually_async(lambda: serving(supervisor) == 2)
        supervisor.stop()
        assert await task == 0


async def test_a_second_stop_is_passed_on(start):
    stubborn = """
asked = []
def ask():
    asked.append(1)
    report('{"services": {"stopping": "%d"}}' % len(asked))
    if len(asked) > 1: sys.exit(0)
on(signal.SIGTERM, ask)
report('{"services": {"catalog": "ok"}}')
while True: signal.pause()
"""
    supervisor = start(stubborn)
    async with kept(supervisor, 2) as task:
        await eventually_async(lambda: serving(supervisor) == 2)
        supervisor.stop()
        await eventually_async(lambda: says(supervisor, "stopping"))
        assert not task.done()
        supervisor.stop()
        assert await task == 0


async def test_a_reload_is_asked_of_workers_that_serve(start, tmp_path):
    script = """
on(signal.SIGHUP, lambda: open(os.path.join(sys.argv[1], str(os.getpid())), "w").close())
"""
    supervisor = start(script + SERVE, tmp_path)
    async with kept(supervisor, 2):
        await eventually_async(lambda: serving(supervisor) == 2)
        supervisor.reload()
        await eventually_async(lambda: len(list(tmp_path.iterdir())) == 2)
        assert restarts(supervisor) == 0


async def test_ready_is_what_all_serving_workers_say(start, tmp_path):
    (tmp_path / "state").write_text("ok")
    script = """
on(signal.SIGHUP, lambda: report('{"services": {"catalog": "%s", "vending": "ok"}}' % state.read_text()))
on(signal.SIGTERM, sys.exit)
import pathlib
state = pathlib.Path(sys.argv[1])
state.with_name(str(os.getpid())).touch()
report('{"services": {"catalog": "%s", "vending": "ok"}}' % state.read_text())
while True: signal.pause()
"""
    supervisor = start(script, tmp_path / "state")
    assert await supervisor.readiness() == {"workers": "none serves"}
    async with kept(supervisor, 2):
        await eventually_async(lambda: serving(supervisor) == 2)
        assert await supervisor.readiness() == {"catalog": "ok", "vending": "ok"}

        (tmp_path / "state").write_text("does not answer")
        os.kill(next(int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()), 1)
        await eventually_async(lambda: says(supervisor, "catalog", "does not answer"))
        assert await supervisor.readiness() == {"catalog": "does not answer", "vending": "ok"}


async def test_worker_that_falls_silent_is_killed(start, caplog):
    hang = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
report('{"services": {"catalog": "ok"}}')
time.sleep(600)
"""
    supervisor = start(hang, silence=timedelta(seconds=1))
    async with kept(supervisor, 1):
        await eventually_async(lambda: restarts(supervisor) >= 1)

    assert "worker 1 does not report any more" in caplog.text
    assert "was killed by signal 9" in caplog.text
