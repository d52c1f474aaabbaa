"""What the scenarios of a run came to, told at its end whether they passed or not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.integration.fleet.load import Load
from tests.integration.fleet.tally import HEADER, Tally, format_table


class Report:
    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}

    @asynccontextmanager
    async def record(self, scenario: str, loaded: AbstractAsyncContextManager[Load]) -> AsyncIterator[Load]:
        """Keep what becomes of a load, however its scenario ends; notes may still be added afterwards."""
        async with loaded as load:
            self._tallies[scenario] = load.tally
            yield load

    def sections(self) -> Iterator[tuple[str, str]]:
        """Return a title and a text for each scenario, and for all of them together."""
        for scenario, tally in self._tallies.items():
            table = format_table([HEADER, *tally.rows(), tally.totals()])
            yield f"fleet: {scenario}", "\n".join([table, *tally.notes])
        if self._tallies:
            rows = [[scenario, *tally.totals()[1:]] for scenario, tally in self._tallies.items()]
            yield "fleet", format_table([HEADER, *rows])
