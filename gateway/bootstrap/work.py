"""Opens what jobs are worked on with, for a worker and for whoever runs one by hand."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Final

from gateway.adapters.job_queue import StateJobQueue
from gateway.adapters.metrics import PrometheusMetrics
from gateway.adapters.ops_server import OK, serve_ops
from gateway.adapters.state import ProvedState, open_state
from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.adapters.work_metrics import PrometheusQueueMetrics, PrometheusWorkMetrics
from gateway.bootstrap.craft_parts import CraftParts
from gateway.bootstrap.crafts import build_crafts
from gateway.bootstrap.reload import Reloader
from gateway.bootstrap.replica import replica_name
from gateway.bootstrap.signals import stop_signals
from gateway.config.load import Loaded
from gateway.config.schema import Config, public_url
from gateway.domain.job import JobKind
from gateway.ports import utcnow
from gateway.work.craft import Craft
from gateway.work.performance import Outcome, Workshop
from gateway.work.places import SparkPlaces
from gateway.work.runner import ProcessRunner
from gateway.work.worker import Worker

log = logging.getLogger(__name__)

RUNNER: Final = (sys.executable, "-m", "pipeline.runner")
# The gateway's own settings, secrets among them, are nothing that a run needs.
_OURS: Final = "SLUICE_"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkGiven:
    """What a worker may be given by whoever starts it."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    runner: Sequence[str] = RUNNER
    build: Callable[[CraftParts], Mapping[JobKind, Craft]] = build_crafts


class Work:
    """A worker on the state of a configuration, and what it is made of."""

    def __init__(self, config: Config, given: WorkGiven, storages: OpenStorages, state: ProvedState) -> None:
        self.metrics = PrometheusMetrics(version=version("sluice-gateway"))
        self.queue = StateJobQueue(
            state,
            worker=replica_name(),
            lease=config.pipeline.lease_time,
            clock=utcnow,
            metrics=PrometheusQueueMetrics(self.metrics.registry),
        )
        self._given = given
        self._storages = storages
        self._state = state
        self._places = SparkPlaces(storages)
        self.worker = Worker(self._workshop(config), PrometheusWorkMetrics(self.metrics.registry))

    @property
    def shop(self) -> Workshop:
        return self.worker.shop

    async def apply(self, config: Config) -> str:
        """Take up a changed configuration for the jobs to come, and return what it is known by."""
        await self._storages.reload(config)
        # In a thread: the lease of the job under way is renewed meanwhile.
        crafts = await asyncio.to_thread(self._crafts, config)
        self.worker.shop = replace(self.worker.shop, crafts=crafts)
        return generation_of(config)

    async def ready(self) -> Mapping[str, str]:
        return {"state": self.worker.trouble or OK}

    def _workshop(self, config: Config) -> Workshop:
        env = {name: value for name, value in self._given.env.items() if not name.startswith(_OURS)}
        return Workshop(
            queue=self.queue,
            crafts=self._crafts(config),
            runner=ProcessRunner(self._given.runner, env),
            places=self._places,
            spark=spark_settings(config),
            lease_time=config.pipeline.lease_time,
            job_timeout=config.pipeline.job_timeout,
            clock=utcnow,
        )

    def _crafts(self, config: Config) -> Mapping[JobKind, Craft]:
        return self._given.build(
            CraftParts(
                config=config,
                storages=self._storages,
                state=self._state,
                places=self._places,
                clock=utcnow,
            )
        )


@asynccontextmanager
async def open_work(config: Config, given: WorkGiven) -> AsyncIterator[Work]:
    """Open the storages and the state of a configuration until the block is left."""
    process = StorageProcess(public_url=public_url(config), grace=config.grace)
    async with OpenStorages(config, process) as storages, open_state(config, storages) as state:
        await state.prove_at_start()
        work = Work(config, given, storages, state)
        try:
            yield work
        finally:
            await work.shop.runner.close()


async def run_worker(config: Config, source: Callable[[], Loaded], file: Path, given: WorkGiven) -> None:
    """Work until SIGINT or SIGTERM; the job under way may finish, unless that takes too long."""
    stop, end = asyncio.Event(), asyncio.Event()
    async with open_work(config, given) as work:
        work.metrics.set_config(generation_of(config), utcnow())
        reloader = Reloader(config=config, source=source, file=file, apply=work.apply, metrics=work.metrics)
        async with serve_ops(config.metrics.listen, work.metrics.registry, work.ready) as ops:
            watching = asyncio.create_task(reloader.watch())
            with stop_signals(lambda: _ask_to_stop(stop, end, config)), _hangups(reloader.ask):
                kinds = ", ".join(work.shop.crafts) or "nothing that this configuration asks for"
                log.info("working on %s; metrics on %s", kinds, ops.address)
                try:
                    await work.worker.work(stop, end)
                finally:
                    ops.drain()
                    await _cancelled(watching)


async def drain_queue(config: Config, given: WorkGiven) -> Counter[Outcome]:
    """Ask for what is due, work until nothing is left, and count what became of it."""
    stop, end = asyncio.Event(), asyncio.Event()
    with stop_signals(lambda: _ask_to_stop(stop, end, config)):
        async with open_work(config, given) as work:
            return await work.worker.drain(stop, end)


def generation_of(config: Config) -> str:
    """Return what a worker's configuration is known by."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:16]


def spark_settings(config: Config) -> dict[str, object]:
    """Return what a run is told of the Spark that it is to run on."""
    spark = config.pipeline.spark
    return {"master": spark.master, "remote": spark.remote, "jars": spark.jars, "conf": dict(spark.conf)}


def _ask_to_stop(stop: asyncio.Event, end: asyncio.Event, config: Config) -> None:
    if stop.is_set():
        end.set()
        return
    log.info("stopping: the job under way may finish")
    stop.set()
    asyncio.get_running_loop().call_later(config.grace.total_seconds(), end.set)


@contextmanager
def _hangups(ask: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, ask)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
