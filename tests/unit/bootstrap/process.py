"""A gateway process without an edge and without listeners: what it does beside serving requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from gateway.bootstrap import Running, running
from gateway.bootstrap.given import Given, Operations
from gateway.config.load import Loaded
from gateway.config.schema import Config
from tests.deployments import split_keys
from tests.waiting import eventually_async

_KEYS = split_keys()


class NoOperations:
    """Operations that listen nowhere."""

    address = ""

    def drain(self) -> None:
        pass


class Process:
    """A running process, its metrics, and the configuration that it reads when it reloads."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._loads = 0
        self._registry = CollectorRegistry()

    @asynccontextmanager
    async def run(self, file: Path) -> AsyncIterator[None]:
        async with running(self._config, self._load, file, Given(operations=self._operate)) as process:
            # It compares the file with its configuration once: a change before that would be loaded twice.
            await eventually_async(lambda: self._loads)
            self._process: Running = process
            yield

    async def reload(self, config: Config) -> None:
        """Have the process reload a changed configuration, and wait until it was applied."""
        before = self.metric("sluice_config_reloads_total", outcome="success")
        self._config = config
        self._process.reload()
        await eventually_async(lambda: self.metric("sluice_config_reloads_total", outcome="success") > before)

    @property
    def generation(self) -> str:
        """The generation of the active configuration."""
        (generation,) = (
            sample.labels["generation"]
            for family in self._registry.collect()
            for sample in family.samples
            if sample.name == "sluice_config_generation_info"
        )
        return generation

    def metric(self, name: str, **labels: str) -> float:
        return self._registry.get_sample_value(name, labels) or 0

    def _load(self) -> Loaded:
        self._loads += 1
        return Loaded(config=self._config)

    @asynccontextmanager
    async def _operate(self, registry: CollectorRegistry, _: object) -> AsyncIterator[Operations]:
        self._registry = registry
        yield NoOperations()


@asynccontextmanager
async def run_process(config: Config, directory: Path) -> AsyncIterator[Process]:
    """Run a process of a configuration whose file is never written."""
    process = Process(config)
    async with process.run(directory / "server.yaml"):
        yield process


def view_config(directory: Path, *columns: str, **others: Any) -> Config:
    """Return the configuration of a catalog with a view of each column of the table ``s.d.t``."""
    lake = directory / "lake"
    views = [
        {
            "name": f"v_{column}",
            "from": "s.d.t",
            "columns": [column],
            "location": str(lake / "views" / column),
        }
        for column in columns
    ]
    schema = {"name": "d", "tables": [{"name": "t", "location": str(lake / "t")}], "views": views}
    settings = {
        "stateDir": str(directory / "own"),
        "services": {"run": ["catalog", "snapshot"]},
        "keys": {"current": _KEYS["catalog"] | _KEYS["snapshot"]},
        "shares": [{"name": "s", "schemas": [schema]}],
        "storages": [{"name": "lake", "prefix": str(lake), "vendor": "local"}],
        **others,
    }
    return Config.model_validate(settings)
