"""One fleet for all scenarios, whole again at the start of each, and the tables of what they came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager

import pytest

from tests.integration.fleet.lake import new_lake
from tests.integration.fleet.load import Load
from tests.integration.fleet.report import Report
from tests.integration.fleet.running import Fleet, planned_fleet

Record = Callable[[str, AbstractAsyncContextManager[Load]], AbstractAsyncContextManager[Load]]

_report: pytest.StashKey[Report] = pytest.StashKey()


@pytest.fixture(scope="package")
def planned(tmp_path_factory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("fleet")
    with planned_fleet(directory, new_lake(directory / "lake")) as fleet:
        yield fleet


@pytest.fixture
async def fleet(planned: Fleet) -> Fleet:
    """A fleet of which every process runs."""
    await planned.heal()
    return planned


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Record:
    """Runs a load of which the end of the run tells what became of it."""
    return request.config.stash.setdefault(_report, Report()).record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for title, text in config.stash.get(_report, Report()).sections():
        terminalreporter.section(title)
        terminalreporter.write_line(text)
