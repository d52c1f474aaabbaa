"""What holds for all tests: their lanes, their settings, and the tables at the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.components import ComponentReport
from tests.skipping import SkippingReport
from tests.timing import TimingReport

# Before any test imports grpc: its core would write its own notes between the dots.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# A busy machine is slow, which says nothing about an example.
settings.register_profile("sluice", deadline=None)
settings.load_profile("sluice")

pytest_plugins = ["tests.lanes", "tests.oracles.fixtures", "tests.spark", "tests.stores.fixtures"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "component(name): uses a real component that tests/components.py names"
    )
    config.addinivalue_line("markers", "slow: takes seconds, so `make test-fast` leaves it out")
    config.addinivalue_line("markers", "system: needs a program that apt, Go or npm brings")
    config.pluginmanager.register(ComponentReport())
    config.pluginmanager.register(SkippingReport())
    is_worker = hasattr(config, "workerinput")
    if not is_worker and (file := os.environ.get("TEST_TIMES")):
        config.pluginmanager.register(TimingReport(Path(file)))
