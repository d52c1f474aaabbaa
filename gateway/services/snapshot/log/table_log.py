"""The log of one table, and what reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from gateway.domain.location import Location
from gateway.ports import LogReader
from gateway.services.snapshot.log.parsing import Parsing

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLog:
    location: Location
    reader: LogReader
    # None: the threads that all else runs in.
    parsing: Parsing | None = field(default=None, repr=False, compare=False)

    async def parse(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run what the content of the log takes to parse, aside."""
        if self.parsing is None:
            return await asyncio.to_thread(function, *args, **options)
        return await self.parsing.run(self.location, partial(function, *args, **options))
