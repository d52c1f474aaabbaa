"""Durations and outcomes of a run's tests, as JSON for deploy/dev/lanes.py."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest


class TimingReport:
    """Adds up set-up, call and tear-down of each test."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_shard = "TEST_SHARD" in os.environ
        self._durations: Counter[str] = Counter()
        # Of tests/scheduling.py.
        self._scopes: Counter[str] = Counter()
        self._outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._durations[report.nodeid] += report.duration  # type: ignore[assignment]  # seconds, not a count
        # A shard has no controller that names scopes.
        scope = getattr(report, "scope", "") or (self._is_shard and report.nodeid.partition("::")[0])
        if scope:
            self._scopes[scope] += report.duration  # type: ignore[assignment]  # seconds
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        outcomes = Counter(self._outcomes.values())
        failed = [test for test, outcome in self._outcomes.items() if outcome == "failed"]
        report = {
            "durations": self._durations,
            "scopes": self._scopes,
            "outcomes": outcomes,
            "failed": failed,
        }
        self._file.write_text(json.dumps(report))
