"""Leaves a Redis alone that does not answer, and finds out by itself when it does again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.adapters.cache.chance import Chance, chance
from gateway.adapters.credential_metrics import CredentialMetrics, RedisError

# Failures without a success between them.
_MOST_FAILURES: Final = 5
# These hold for every key: nothing is gained by trying a few more.
_CERTAIN: Final = frozenset({RedisError.AUTHENTICATION, RedisError.LOADING, RedisError.READ_ONLY})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0
_CANCEL_SECONDS: Final = 0.1

log = logging.getLogger(__name__)


class Breaker:
    """Open until the first probe succeeds, so that no request pays for a connection that does not come.

    A probe returns why Redis cannot be used, or None, and never raises.
    """

    def __init__(
        self,
        probe: Callable[[], Awaitable[RedisError | None]],
        metrics: CredentialMetrics,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Chance = chance,
    ) -> None:
        self._probe = probe
        self._metrics = metrics
        self._sleep = sleep
        self._chance = chance
        self._failures = 0
        self._is_told = False
        self._task: asyncio.Task[None] | None = None
        self.is_open = True
        metrics.set_redis(is_up=False)

    async def start(self, patience: float) -> None:
        """Begin to probe; wait so long for a first success, which spares the first requests a miss."""
        task = self._task = asyncio.create_task(self._find_out())
        await asyncio.wait([task], timeout=patience)

    async def close(self) -> None:
        """Stop to probe; never raises, whatever became of the last one."""
        if (task := self._task) is None:
            return
        # Until it is done: the client calls asyncio.wait_for, which can swallow a cancellation (Python 3.11),
        # and a Redis that refuses us would be probed for ever.
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=_CANCEL_SECONDS)
        await asyncio.gather(task, return_exceptions=True)

    def succeed(self) -> None:
        self._failures = 0

    def fail(self, reason: RedisError) -> None:
        """Note a failure; with enough of them, everybody does without until a probe succeeds."""
        self._failures += _MOST_FAILURES if reason in _CERTAIN else 1
        if self._failures < _MOST_FAILURES or self.is_open:
            return
        self.is_open = True
        self._metrics.set_redis(is_up=False)
        self._tell(reason)
        self._task = asyncio.create_task(self._find_out())

    async def _find_out(self) -> None:
        pause = _FIRST_PAUSE
        while (reason := await self._probe()) is not None:
            self._metrics.count_redis_error(reason)
            self._tell(reason)
            await self._sleep(pause * (0.5 + self._chance() / 2))
            pause = min(pause * 2, _LONGEST_PAUSE)
        self._failures = 0
        self.is_open = False
        self._metrics.set_redis(is_up=True)
        if self._is_told:
            self._is_told = False
            log.warning("redis is back")

    def _tell(self, reason: RedisError) -> None:
        # Once: a line for each request would bury what else is wrong.
        if not self._is_told:
            self._is_told = True
            log.warning(
                "redis is out of order (%s): until it is back, each replica issues and signs for itself",
                reason,
            )
