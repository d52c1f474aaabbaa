"""Plugins, environment and reports of all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.components import ComponentReport
from tests.hypothesis_profiles import load_profile
from tests.timing import TimingReport

# Before any test imports grpc: its core would write its own notes between the dots.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Before any test imports polars: the suite has more workers than cores, and threads would contend for them.
os.environ.setdefault("POLARS_MAX_THREADS", "1")

# Servers of tests are on loopback, which a proxy of the environment does not reach.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join(
    filter(None, (os.environ.get("no_proxy") or os.environ.get("NO_PROXY"), "127.0.0.1,localhost"))
)

load_profile()

_SIGNAL_HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

pytest_plugins = [
    "tests.lanes",
    "tests.scheduling",
    "tests.oracles.fixtures",
    "tests.spark",
    "tests.stores.fixtures",
]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "component(name): uses a real component that tests/components.py names"
    )
    config.addinivalue_line("markers", "slow: takes seconds, so `make test-fast` leaves it out")
    config.addinivalue_line("markers", "system: needs a program that apt, Go or npm brings")
    config.pluginmanager.register(ComponentReport())
    is_worker = hasattr(config, "workerinput")
    if not is_worker and (file := os.environ.get("TEST_TIMES")):
        config.pluginmanager.register(TimingReport(Path(file)))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    # A gateway that ran in this process leaves these ignored, and processes started later would inherit that.
    for number, handler in _SIGNAL_HANDLERS.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # What pytest collects lives until the end of the run: the garbage collector need not scan it.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    # Nor scan it during the tests.
    gc.collect()
    gc.freeze()
    # Most tests make few cycles: by default the collector would run several times in each of them.
    gc.set_threshold(20_000, 20, 50)
