"""How a process begins to stop: it says so, serves on until that was noticed, and then counts its grace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from gateway.bootstrap.given import Operations

# Who watches a service's health hears at once that it stops; what it has sent by then is still answered.
_NOTICE: Final = timedelta(milliseconds=500)


class Watched(Protocol):
    """The gRPC health of a process."""

    @property
    def is_watched(self) -> bool: ...

    async def stop(self) -> None: ...


class Graceful(Protocol):
    """What goes on for as long as requests under way may."""

    def begin_stop(self) -> None:
        """Count the grace from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    ops: Operations
    # Tells the edge to close each connection behind its answer.
    leaving: asyncio.Event
    health: Watched
    # None where no audit segments are shipped.
    shipping: Graceful | None
    # How long requests are taken after the process was asked to stop.
    drain: timedelta
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def serve_on(self) -> None:
        """Say that the process stops, and serve on until those who send requests have noticed."""
        self.ops.drain()
        self.leaving.set()
        notice = max(self.drain, _NOTICE if self.health.is_watched else timedelta(0))
        await self.health.stop()
        await self.sleep(notice.total_seconds())
        # Not before: what drain takes is not taken of the grace.
        if self.shipping is not None:
            self.shipping.begin_stop()
