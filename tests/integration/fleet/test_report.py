"""A scenario that fails tells what was sent and what became of it, as one that passes does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.integration.fleet.lake import Lake
from tests.integration.fleet.load import Load
from tests.integration.fleet.report import Report


@asynccontextmanager
async def loaded() -> AsyncIterator[Load]:
    """A load of one request, which is answered when all that is under way is waited for."""
    load = Load(Lake(directory=None, tables={}, tokens={}), [], patience=0)  # type: ignore[arg-type]
    load.tally.sent["query"] += 1
    try:
        yield load
    finally:
        load.tally.outcomes["answered"]["query"] += 1


async def fail(report: Report) -> None:
    async with report.record("outage", loaded()) as load:
        load.note("in use after 3 s")
        raise TimeoutError


async def test_scenario_that_fails_in_its_middle_has_its_table_and_what_became_of_all():
    report = Report()
    with pytest.raises(TimeoutError):
        await fail(report)
    (title, table), (_, overview) = report.sections()
    assert title == "fleet: outage"
    assert table.splitlines()[1].split() == ["query", "1", "1", "0", "0", "0", "0"]
    assert table.splitlines()[-1] == "in use after 3 s"
    assert overview.splitlines()[1].split() == ["outage", "1", "1", "0", "0", "0", "0"]


async def test_run_without_a_scenario_tells_nothing():
    assert list(Report().sections()) == []
