from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.adapters.metrics import PrometheusMetrics
from gateway.bootstrap import reload
from gateway.bootstrap.reload import Reloader, Signature, WatchTimes, file_signature
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import Loaded
from gateway.config.schema import Config
from gateway.errors import Unavailable
from tests.waiting import eventually_async


@dataclass
class World:
    """A source that gives what it is told to, and what was applied of it."""

    next: Config | Exception = field(default_factory=Config)
    warnings: tuple[str, ...] = ()
    applied: list[Config] = field(default_factory=list)
    refuses: Exception | None = None

    def source(self) -> Loaded:
        if isinstance(self.next, Exception):
            raise self.next
        return Loaded(config=self.next, warnings=self.warnings)

    async def apply(self, config: Config) -> str:
        if self.refuses:
            raise self.refuses
        self.applied.append(config)
        return "g2"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def metrics() -> PrometheusMetrics:
    return PrometheusMetrics(version="0")


@pytest.fixture
def file(tmp_path) -> Path:
    path: Path = tmp_path / "server.yaml"
    path.write_text("version: 1")
    return path


@pytest.fixture
def reloader(world, metrics, file) -> Reloader:
    return Reloader(config=Config(), source=world.source, file=file, apply=world.apply, metrics=metrics)


def count(metrics: PrometheusMetrics, outcome: str) -> float | None:
    return metrics.registry.get_sample_value("sluice_config_reloads_total", {"outcome": outcome})


async def test_a_changed_configuration_is_applied_and_counted(world, metrics, reloader):
    world.next = Config.model_validate({"shares": [{"name": "a"}]})

    assert await reloader.reload()

    assert world.applied == [world.next]
    assert count(metrics, "success") == 1


@pytest.mark.parametrize(
    "fault",
    [ConfigError([Fault(path="port", message="is odd")]), OSError("gone")],
    ids=["faults", "unreadable"],
)
async def test_a_broken_configuration_is_refused_and_nothing_applied(world, metrics, reloader, fault, caplog):
    world.next = fault

    assert not await reloader.reload()

    assert world.applied == []
    assert count(metrics, "failure") == 1
    assert "is refused" in caplog.text


async def test_what_was_changed_while_all_else_started_is_taken_up(world, metrics, reloader):
    world.next = Config.model_validate({"shares": [{"name": "a"}]})

    watching = asyncio.create_task(reloader.watch())
    await eventually_async(lambda: world.applied)
    watching.cancel()

    assert world.applied == [world.next]
    assert count(metrics, "success") == 1


async def test_a_file_that_was_broken_while_all_else_started_is_refused(world, metrics, reloader):
    world.next = OSError("gone")

    watching = asyncio.create_task(reloader.watch())
    await eventually_async(lambda: count(metrics, "failure"))
    watching.cancel()

    assert world.applied == []


async def test_a_file_that_stayed_the_same_is_not_applied_again(world, metrics, file, monkeypatch):
    loads: list[Loaded] = []
    stats: list[Path] = []

    def source() -> Loaded:
        loads.append(world.source())
        return loads[-1]

    def signature(path: Path) -> Signature:
        stats.append(path)
        return file_signature(path)

    monkeypatch.setattr(reload, "file_signature", signature)

    reloader = Reloader(
        config=Config(),
        source=source,
        file=file,
        apply=world.apply,
        metrics=metrics,
        times=WatchTimes(interval=timedelta(milliseconds=1)),
    )
    watching = asyncio.create_task(reloader.watch())
    await eventually_async(lambda: len(stats) > 5)
    watching.cancel()

    assert (len(loads), world.applied) == (1, [])


async def test_a_configuration_that_cannot_be_applied_is_refused(world, metrics, reloader):
    world.refuses = Unavailable("the storage does not open")

    assert not await reloader.reload()

    assert count(metrics, "failure") == 1


async def test_a_later_good_one_is_taken_up_after_a_refusal(world, reloader):
    world.next = OSError("gone")
    await reloader.reload()
    world.next = Config()

    assert await reloader.reload()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"port": 1}, "port"),
        ({"grace": "5s"}, "grace"),
        ({"publicUrl": "http://x"}, "publicUrl"),
        ({"credentials": {"life": "2h"}}, "credentials"),
    ],
)
async def test_what_needs_a_restart_is_named_as_it_stands_in_the_file(world, reloader, caplog, change, named):
    world.next = Config.model_validate(change)

    await reloader.reload()

    assert f"a change of {named} needs a restart" in caplog.text


@pytest.mark.parametrize(
    "change", [{"shares": [{"name": "a"}]}, {"recipients": [{"name": "r"}]}, {"storages": []}]
)
async def test_what_is_taken_up_needs_no_restart(world, reloader, caplog, change):
    world.next = Config.model_validate(change)

    await reloader.reload()

    assert "restart" not in caplog.text


@pytest.mark.parametrize(
    ("before", "after", "taken"),
    [(False, True, False), (True, False, False), (True, True, True)],
    ids=["given by a restart only", "withdrawn at once", "kept"],
)
async def test_access_for_everybody_is_never_given_by_a_reload(world, metrics, file, before, after, taken):
    # The listener that runs may be open to the world, though the new file says loopback.
    running = Config.model_validate({"host": "0.0.0.0", "allowAnonymous": before})
    world.next = Config.model_validate({"host": "127.0.0.1", "allowAnonymous": after})
    reloader = Reloader(config=running, source=world.source, file=file, apply=world.apply, metrics=metrics)

    await reloader.reload()

    assert [config.allow_anonymous for config in world.applied] == [taken]


async def test_what_needs_a_restart_is_not_applied_and_named_until_then(world, reloader, caplog):
    world.next = Config.model_validate({"port": 1, "shares": [{"name": "a"}]})

    await reloader.reload()
    await reloader.reload()

    assert [(config.port, len(config.shares)) for config in world.applied] == [(8080, 1)] * 2
    assert caplog.text.count("a change of port needs a restart") == 2


async def test_the_file_is_still_watched_after_an_error_that_nobody_foresaw(world, metrics, reloader, caplog):
    world.next = RuntimeError("unforeseen")
    watching = asyncio.create_task(reloader.watch())
    reloader.ask()
    await eventually_async(lambda: count(metrics, "failure"))
    world.next = Config()
    reloader.ask()
    await eventually_async(lambda: world.applied)
    watching.cancel()

    assert "Traceback" in caplog.text


async def test_warnings_of_the_new_file_are_logged(world, reloader, caplog):
    caplog.set_level(logging.WARNING)
    world.warnings = ("an odd key",)

    await reloader.reload()

    assert "an odd key" in caplog.text


def asked_only(world: World, metrics: PrometheusMetrics, file: Path) -> Reloader:
    """Return a reloader that does not look at the file by itself, and does not wait until it settles."""
    return Reloader(
        config=Config(),
        source=world.source,
        file=file,
        apply=world.apply,
        metrics=metrics,
        times=WatchTimes(interval=timedelta(hours=1), settling=timedelta(0)),
    )


async def test_being_asked_reloads_at_once(world, metrics, file):
    reloader = asked_only(world, metrics, file)
    watching = asyncio.create_task(reloader.watch())
    reloader.ask()
    await eventually_async(lambda: world.applied)
    watching.cancel()

    assert len(world.applied) == 1


async def test_a_file_that_is_being_written_is_read_when_it_is_whole(world, metrics, file, monkeypatch):
    applied: list[int] = []

    def signature(path: Path) -> Signature:
        """Write more to the file before each of the first eight looks at it."""
        applied.append(len(world.applied))
        if len(applied) <= 8:
            path.write_text("#" * len(applied))
        return file_signature(path)

    monkeypatch.setattr(reload, "file_signature", signature)
    reloader = asked_only(world, metrics, file)
    watching = asyncio.create_task(reloader.watch())
    reloader.ask()
    await eventually_async(lambda: world.applied)
    watching.cancel()

    # Eight looks at a file that changes, and one that finds it unchanged.
    assert applied == [0] * 9
    assert len(world.applied) == 1


class Inline(ThreadPoolExecutor):
    """Runs each function at once, in the thread that submits it."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


class StoppedClock:
    """The clock of the event loop, which moves only when the test says so."""

    _STEP = 0.05

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._steps = 0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", self.now)

    def now(self) -> float:
        return round(self._steps * self._STEP, 2)

    async def advance(self) -> None:
        """Move on by a step, and have everything happen that is due then."""
        self._steps += 1
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_change_is_applied_within_2200_ms_by_default(world, metrics, file, monkeypatch):
    # Looks at the file then take no time, and nothing but the watch itself makes it late.
    asyncio.get_running_loop().set_default_executor(Inline())
    clock = StoppedClock(monkeypatch)
    reloader = Reloader(config=Config(), source=world.source, file=file, apply=world.apply, metrics=metrics)
    watching = asyncio.create_task(reloader.watch())
    waits = []
    # In steps after the last change was applied: right after a look at the file, and right before the next.
    for pause in (3, 0, 1, 20, 39, 40):
        for _ in range(pause):
            await clock.advance()
        changed_at = clock.now()
        world.next = Config.model_validate({"shares": [{"name": f"after-{pause}"}]})
        file.write_text("#" * (pause + 1))
        while world.next not in world.applied and clock.now() < changed_at + 60:
            await clock.advance()
        waits.append(round(clock.now() - changed_at, 2))
    watching.cancel()

    assert max(waits) <= 2.2, waits
