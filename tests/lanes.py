"""Lanes: every test belongs to exactly one, and every lane has a make target."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.dev.lanes import LANES
from tests.components import CURL, DELTA_KERNEL, PYSPARK, SPARK_PIPELINE, SPARK_WRITER

# Lanes that pytest deselects unless -m names them.
ON_REQUEST = frozenset(lane.name for lane in LANES.values() if lane.is_on_request)

_TESTS = Path(__file__).parent
_JVM_COMPONENTS = frozenset({PYSPARK, SPARK_WRITER, SPARK_PIPELINE, DELTA_KERNEL})
_COMPONENT_MARKS = frozenset({"integration", "slow", "system"})


def pytest_configure(config: pytest.Config) -> None:
    for lane in LANES.values():
        config.addinivalue_line("markers", f"{lane.name}: {lane.description}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    requested = str(config.option.markexpr)
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        lane = lane_of(item)
        item.add_marker(lane)
        if lane == "spark" or CURL in _components_of(item):
            # Java, Maven and curl come from apt.
            item.add_marker("system")
        (deselected if lane in ON_REQUEST and lane not in requested else selected).append(item)
    config.hook.pytest_deselected(items=deselected)
    items[:] = selected


def lane_of(item: pytest.Item) -> str:
    """Return the lane of a test, by its marks and by where it is."""
    marks = {mark.name for mark in item.iter_markers()}
    folder, *below = item.path.relative_to(_TESTS).parts
    if on_request := ON_REQUEST & marks:
        return min(on_request)
    if folder == "integration" and below[0] in ("fleet", "helm"):
        return below[0]
    if _components_of(item) & _JVM_COMPONENTS:
        return "spark"
    if folder in ("integration", "e2e") or marks & _COMPONENT_MARKS:
        return "components"
    return "fast"


def _components_of(item: pytest.Item) -> set[str]:
    return {name for mark in item.iter_markers("component") for name in mark.args}
