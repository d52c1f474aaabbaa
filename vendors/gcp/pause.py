"""For how long a provider has asked to be left alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.errors import Unavailable
from gateway.ports import Clock

# What a refusal counts as at least: its time may be over when those are answered who asked with it.
_LEAST: Final = timedelta(seconds=1)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Pause:
    """It holds for everybody who asks, and ends by itself."""

    def __init__(
        self,
        clock: Clock,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._chance = chance
        self._began_at, self._span = _NEVER, timedelta()

    @property
    def left(self) -> timedelta:
        passed = self._clock() - self._began_at
        # A clock that was set back does not make it longer.
        return self._span - passed if timedelta() <= passed < self._span else timedelta()

    def extend(self, span: timedelta) -> None:
        """Note that the provider has asked for so much from now on."""
        if span > self.left:
            self._began_at, self._span = self._clock(), span

    async def wait(self, most: timedelta) -> timedelta:
        """Wait for its end, and return what that took; raise ``Unavailable`` when it would take too long."""
        left = max(self.left, _LEAST)
        if left > most:
            raise Unavailable("the storage's provider is busy; try again later", retry_after=left)
        # Not everybody who waits is to ask again at the same moment.
        wait = self.left + timedelta(seconds=self._chance())
        await self._sleep(wait.total_seconds())
        return max(wait, _LEAST)
