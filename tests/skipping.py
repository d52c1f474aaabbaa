"""How many files predicates have spared their readers, in the table at the end of a test run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

# What tests record their counts as, by pytest's ``record_property``.
PROPERTY = "skipping"


class SkippingReport:
    """Adds up what tests have recorded: a mapping with a label, and a count for each of its other names."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, Mapping):
                counts = {key: int(count) for key, count in value.items() if key != "label"}
                self._counts.setdefault(str(value["label"]), Counter()).update(counts)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._counts:
            return
        terminalreporter.section("files that predicates leave out")
        for label, counts in sorted(self._counts.items()):
            terminalreporter.write_line(f"{label} {'.' * (60 - len(label))} {_outcome(counts)}")


def _outcome(counts: Mapping[str, int]) -> str:
    left_out, unmatched = counts["left out"], counts["without a match"]
    used, hints = counts["used"], counts["hints"]
    files = f"{_percent(left_out, unmatched)} of {unmatched:,} without a match"
    return f"{files}; {_percent(used, hints)} of {hints:,} hints used"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"
