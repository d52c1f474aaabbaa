"""Turns at a provider: so many calls at a time, each of them in bounded time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from gateway.errors import Unavailable

# Whoever is not answered for so long need not hope to be.
LONGEST: Final = timedelta(seconds=30)


class ProviderTurns:
    """A turn ends in time; how long others are waited for says nothing about the provider.

    Unless it answers none of them: then those who have waited for as long do not try in their turn.
    """

    def __init__(
        self, most: int, *, longest: timedelta = LONGEST, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._slots = asyncio.Semaphore(most)
        self._longest = longest.total_seconds()
        self._monotonic = monotonic
        self._answered_at = -math.inf

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Wait for a turn, and be answered in it."""
        came_at = self._monotonic()
        async with self._slots:
            if self._monotonic() - max(came_at, self._answered_at) > self._longest:
                raise _silent()
            try:
                async with asyncio.timeout(self._longest):
                    yield
            except TimeoutError:
                raise _silent() from None
            self._answered_at = self._monotonic()


def _silent() -> Unavailable:
    return Unavailable("the storage's provider does not answer in time; try again later")
