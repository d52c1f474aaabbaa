"""How tests are distributed over processes.

pytest-xdist distributes scopes: packages and modules whose tests share fixtures. One worker runs a whole
scope, so that no fixture of it is set up twice. Long scopes start first, so that all workers finish at about
the same time. `--dist loadscope` chooses this schedule.

TEST_SHARD=1/3 makes pytest collect the second of three shards of the test files. Shards take about the same
time.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Seconds of scopes, by lane, written by `deploy/dev/lanes.py --record`. An outdated entry delays the end of a
# run. It has no other effect.
DURATIONS = Path(__file__).with_name("durations.json")
# Where a worker tells the controller, which collects nothing itself, the scope of each test.
_SCOPES_FILE = "scopes_file"
# Of a test file without a recorded duration.
_SECONDS_OF_A_FILE = 0.3
_TESTS = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if not is_worker and config.getoption("dist", "no") == "loadscope":
        config.pluginmanager.register(_Controller(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    given: dict[str, Any] = getattr(config, "workerinput", {})
    if _SCOPES_FILE not in given:
        return
    scopes = {item.nodeid: scope_of(item) for item in items}
    if given["workerid"] == "gw0":
        Path(given[_SCOPES_FILE]).write_text(json.dumps(scopes))
    durations = _durations()
    # Stable: the tests of a scope keep their order. A scope without a recorded duration may be a long one.
    items.sort(key=lambda item: -durations.get(scopes[item.nodeid], math.inf))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore the test files of other shards."""
    variable = os.environ.get("TEST_SHARD")
    if variable is None:
        return None
    shard, number = map(int, variable.split("/"))
    return _shards(number).get(collection_path, shard) != shard or None


@cache
def _shards(number: int) -> dict[Path, int]:
    # Of the lane that is sharded.
    files = [file for folder in ("unit", "contract") for file in (_TESTS / folder).rglob("test_*.py")]
    durations = json.loads(DURATIONS.read_text()).get("fast", {}) if DURATIONS.exists() else {}
    seconds = {
        file: durations.get(str(file.relative_to(_TESTS.parent)), _SECONDS_OF_A_FILE) for file in files
    }
    return assign_shards(seconds, number)


def assign_shards(seconds: Mapping[Path, float], number: int) -> dict[Path, int]:
    """Assign each file to a shard: the longest first, to the shard with the least to do."""
    totals = [0.0] * number
    shards = {}
    for file in sorted(seconds, key=lambda file: (-seconds[file], file)):
        shards[file] = totals.index(min(totals))
        totals[shards[file]] += seconds[file]
    return shards


def scope_of(item: Any) -> str:
    """Return the package or module of a test, with the parameters of the fixtures of that scope."""
    fixtures = item._fixtureinfo.name2fixturedefs.values()  # noqa: SLF001 -- pytest has no public way to scopes
    scopes = {definitions[-1].scope for definitions in fixtures}
    module: str = item.nodeid.partition("::")[0]
    place = module.rpartition("/")[0] if "package" in scopes else module
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return place
    wide = [name for name, scope in callspec._arg2scope.items() if scope.value in ("package", "module")]  # noqa: SLF001
    return " ".join([place, *(f"{name}={callspec.indices[name]}" for name in sorted(wide))])


def _durations() -> dict[str, float]:
    """Return the recorded seconds of each scope, in the lane in which it takes longest."""
    lanes: dict[str, dict[str, float]] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    longest: dict[str, float] = {}
    for scopes in lanes.values():
        for scope, seconds in scopes.items():
            longest[scope] = max(seconds, longest.get(scope, 0))
    return longest


class _Controller:
    """The part of the schedule that runs beside the workers."""

    def __init__(self, config: pytest.Config) -> None:
        directory = tempfile.TemporaryDirectory()
        config.add_cleanup(directory.cleanup)
        self._scopes_file = Path(directory.name, "scopes.json")
        self._scopes: dict[str, str] = {}

    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput[_SCOPES_FILE] = str(self._scopes_file)

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> LoadScopeScheduling:
        return _ScopeScheduling(config, log, self.scope_of)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        report.__dict__["scope"] = self.scope_of(report.nodeid)

    def scope_of(self, nodeid: str) -> str:
        if not self._scopes:
            self._scopes = json.loads(self._scopes_file.read_text())
        return self._scopes[nodeid]


class _ScopeScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no type hints
    def __init__(self, config: pytest.Config, log: Producer, scope_of: Any) -> None:
        super().__init__(config, log)
        self._split_scope = scope_of
