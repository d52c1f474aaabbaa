"""What holds for all tests: which of them are fast, and the tables at the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.components import ComponentReport
from tests.skipping import SkippingReport

# Before any test imports grpc: its core would write its own notes between the dots.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# A busy machine is slow, which says nothing about an example.
settings.register_profile("sluice", deadline=None)
settings.load_profile("sluice")

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


def _leave_out(config: pytest.Config, items: list[pytest.Item], mark: str) -> None:
    marked = [item for item in items if item.get_closest_marker(mark)]
    config.hook.pytest_deselected(items=marked)
    items[:] = [item for item in items if item not in marked]
