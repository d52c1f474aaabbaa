"""Records which test executes which line of the product, and how long each test takes.

MUTANT_RECORD names the folder to write: `coverage` holds one context per test, fixture and test file;
`tests.json` holds the duration and the fixtures of every test that passed.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

_FOLDER = Path(os.environ["MUTANT_RECORD"])
_COVERAGE = coverage.Coverage(
    data_file=str(_FOLDER / "coverage"),
    config_file=False,
    include=["gateway/*", "vendors/*", "recipient/src/*"],
)

_durations: defaultdict[str, float] = defaultdict(float)
_fixtures: dict[str, list[str]] = {}
_not_passed: set[str] = set()
_contexts = [""]


def _enter(context: str) -> None:
    _contexts.append(context)
    _COVERAGE.switch_context(context)


def _leave() -> None:
    _contexts.pop()
    _COVERAGE.switch_context(_contexts[-1])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    _COVERAGE.erase()
    _COVERAGE.start()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    _enter(f"file:{collector.nodeid.partition('::')[0]}")
    try:
        return (yield)
    finally:
        _leave()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    _fixtures[item.nodeid] = list(getattr(item, "fixturenames", ()))
    _enter(item.nodeid)
    try:
        return (yield)
    finally:
        _leave()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Credit a shared fixture's lines to every test that uses it, not to the first one alone."""
    if fixturedef.scope == "function":
        return (yield)
    _enter(f"fixture:{fixturedef.argname}")
    try:
        return (yield)
    finally:
        _leave()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _durations[report.nodeid] += report.duration
    if report.outcome != "passed" or hasattr(report, "wasxfail"):
        _not_passed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    _COVERAGE.stop()
    _COVERAGE.save()
    tests = {
        test: {"seconds": round(_durations[test], 4), "fixtures": fixtures}
        for test, fixtures in _fixtures.items()
        if test not in _not_passed
    }
    (_FOLDER / "tests.json").write_text(json.dumps(tests), encoding="utf-8")
