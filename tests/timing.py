"""Durations and outcomes of a run's tests, as JSON for deploy/dev/lanes.py."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest


class TimingReport:
    """Adds up set-up, call and tear-down of each test."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._durations: Counter[str] = Counter()
        self._outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._durations[report.nodeid] += report.duration  # type: ignore[assignment]  # seconds, not a count
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        outcomes = Counter(self._outcomes.values())
        self._file.write_text(json.dumps({"durations": self._durations, "outcomes": outcomes}))
