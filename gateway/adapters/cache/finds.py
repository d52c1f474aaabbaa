"""Names that several ask for in one turn of the event loop, looked up in one round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Final

from gateway.adapters.cache.flight import Flights

# A page of RSA signatures is a quarter of a megabyte: more of them would take longer than one operation may.
_MOST_NAMES: Final = 16

Found = Mapping[str, bytes | None]
Find = Callable[[Sequence[str]], Awaitable[Sequence[bytes | None] | None]]


class Finds:
    """Delays nobody: what is asked for in this turn is sent in the next one, however few have come."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._numbers = count()
        # In the order in which they were first asked for, each once.
        self._names: dict[str, None] = {}
        self._task: asyncio.Task[Found | None] | None = None
        self._flights: Flights[Found | None] = Flights()

    async def find(self, names: Sequence[str]) -> Sequence[bytes | None] | None:
        """Return the values of the names, in order, or None when there is no answer."""
        if self._task is None or len(self._names) >= _MOST_NAMES:
            self._names = {}
            asked = self._names
            self._task = self._flights.start(next(self._numbers), lambda: self._send(asked))
        self._names.update(dict.fromkeys(names))
        # Whoever gives up leaves it to the others.
        found = await asyncio.shield(self._task)
        return None if found is None else [found[name] for name in names]

    async def close(self) -> None:
        await self._flights.close()

    async def _send(self, asked: dict[str, None]) -> Found | None:
        if asked is self._names:
            # Whoever comes from now on is of the next turn.
            self._task = None
        names = list(asked)
        values = await self._find(names)
        # An answer of another length does not tell what is whose.
        if values is None or len(values) != len(names):
            return None
        return dict(zip(names, values, strict=True))
