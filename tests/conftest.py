"""What holds for all tests: which of them are fast, and the tables at the end."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from tests.components import ComponentReport
from tests.hypothesis_profiles import load_profile
from tests.skipping import SkippingReport

# Before any test imports grpc: its core would write its own notes between the dots.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Before any test imports polars: each worker of the suite has one core, and more threads only contend for it.
os.environ.setdefault("POLARS_MAX_THREADS", "1")

load_profile()

pytest_plugins = ["tests.oracles.fixtures", "tests.spark", "tests.stores.fixtures"]

_TESTS = Path(__file__).parent
# Folders of integration tests: what a fleet can take is seen where nothing else takes the machine's time.
_LAST = frozenset({"fleet", "helm"})
_SLOW = frozenset({"integration", "e2e", "slow", "system", "deep"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "component(name): uses a real component that tests/components.py names"
    )
    config.addinivalue_line("markers", "slow: takes seconds, so `make test-fast` leaves it out")
    config.addinivalue_line("markers", "system: needs a program that apt or Go brings")
    config.addinivalue_line(
        "markers", "pipeline: runs jobs on Spark; `make test-all` does so beside the rest"
    )
    config.addinivalue_line("markers", "last: runs alone at the end of `make test-all`, when Helm is built")
    config.pluginmanager.register(ComponentReport())
    config.pluginmanager.register(SkippingReport())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "deep" not in str(config.option.markexpr):
        _leave_out(config, items, "deep")
    for item in items:
        folder, *below = item.path.relative_to(_TESTS).parts
        if folder in ("integration", "e2e"):
            item.add_marker(folder)
        if folder == "integration" and below[0] in _LAST:
            item.add_marker("last")
        if _SLOW.isdisjoint(mark.name for mark in item.iter_markers()):
            item.add_marker("fast")


def pytest_collection_finish() -> None:
    # What the collection made stays until the end: the garbage collector need not go over it in each test.
    gc.collect()
    gc.freeze()


def _leave_out(config: pytest.Config, items: list[pytest.Item], mark: str) -> None:
    marked = [item for item in items if item.get_closest_marker(mark)]
    config.hook.pytest_deselected(items=marked)
    items[:] = [item for item in items if not item.get_closest_marker(mark)]
