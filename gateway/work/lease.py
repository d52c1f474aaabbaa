"""Keeps the lease of a job while it is worked on, and tells when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

from gateway.domain.job import Claim
from gateway.errors import Unavailable
from gateway.ports import Clock
from gateway.work.queue import JobQueue

Sleep = Callable[[float], Awaitable[object]]

log = logging.getLogger(__name__)


class Lease:
    """A claim that is renewed at every third of its time."""

    def __init__(
        self, queue: JobQueue, claim: Claim, *, time: timedelta, clock: Clock, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.claim = claim
        # Set once the job is not ours any more, or nobody can say that it still is.
        self.lost = asyncio.Event()
        self._queue = queue
        self._time = time
        self._clock = clock
        self._sleep = sleep

    async def prove(self) -> bool:
        """Ask now whether the job is still ours, and have the whole time before us if it is."""
        if self.lost.is_set():
            return False
        renewed = await self._queue.renew(self.claim)
        if renewed is None:
            self.lost.set()
            return False
        self.claim = renewed
        return True

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Renew it until the block is left."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping

    async def _keep(self) -> None:
        while not self.lost.is_set():
            await self._sleep(self._time.total_seconds() / 3)
            try:
                await self.prove()
            except Unavailable as exc:
                log.warning("the lease of a job could not be renewed: %s", exc.message)
            except Exception:
                # Whatever it was: the time of the lease goes on.
                log.exception("the lease of a job could not be renewed")
            if self._clock() >= self.claim.leased_until:
                # Another may have it by now.
                self.lost.set()
