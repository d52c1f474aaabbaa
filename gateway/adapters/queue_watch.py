"""Looks at the jobs that wait, for whoever asks for some: without workers nobody else would."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final, Protocol

from gateway.domain.job import JobKind
from gateway.errors import GatewayError

INTERVAL: Final = timedelta(minutes=1)

log = logging.getLogger(__name__)


class Queue(Protocol):
    async def look(self, kinds: Collection[JobKind]) -> None:
        """Tell what waits and for how long, and take nothing."""


class QueueWatch:
    """Looks again and again, as long as there is anything that jobs are asked for."""

    def __init__(
        self,
        queue: Queue,
        is_needed: Callable[[], bool],
        *,
        interval: timedelta = INTERVAL,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._queue = queue
        self._is_needed = is_needed
        self._interval = interval.total_seconds()
        self._sleep = sleep

    async def run(self) -> None:
        while True:
            if self._is_needed():
                await self._look()
            await self._sleep(self._interval)

    async def _look(self) -> None:
        try:
            await self._queue.look(tuple(JobKind))
        except GatewayError as exc:
            # Whoever needs the state for an answer tells of it.
            log.debug("the jobs that wait could not be looked at: %s", exc.message)
        except Exception:
            log.exception("the jobs that wait could not be looked at")


@asynccontextmanager
async def watched_queue(queue: Queue, is_needed: Callable[[], bool]) -> AsyncIterator[None]:
    """Look at what waits until the block is left."""
    task = asyncio.create_task(QueueWatch(queue, is_needed).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
