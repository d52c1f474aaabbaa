"""One fleet for all scenarios, whole again at the start of each, and the table of what they came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.integration.fleet.running import Fleet, planned_fleet
from tests.integration.fleet.tally import HEADER, Tally, format_table

Tell = Callable[..., None]

_told: pytest.StashKey[list[Sequence[object]]] = pytest.StashKey()


@pytest.fixture(scope="package")
def planned(tmp_path_factory) -> Iterator[Fleet]:
    with planned_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
async def fleet(planned: Fleet) -> Fleet:
    """A fleet of which every process runs."""
    await planned.heal()
    return planned


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Print what a scenario came to, and keep its totals for the end of the run."""

    def say(scenario: str, tally: Tally, *notes: str) -> None:
        print(f"\n{scenario}")  # noqa: T201 -- it is what the scenario is run for
        print(format_table([HEADER, *tally.rows(), tally.totals()]))  # noqa: T201
        print(*notes, sep="\n")  # noqa: T201
        reasons = ", ".join(f"{count} x {reason}" for reason, count in tally.reasons().items())
        told = request.config.stash.setdefault(_told, [])
        told.append([scenario, *tally.totals()[1:-1], reasons])

    return say


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if told := config.stash.get(_told, []):
        terminalreporter.section("fleet")
        terminalreporter.write_line(format_table([HEADER, *told]))
