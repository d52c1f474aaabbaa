"""Ships closed segments of an audit log to where all replicas' are gathered: each once, none lost.

A segment goes under ``<day of its start>/<its name>``, which no other has: whoever ships it a second time
finds it there. It is removed from the disk when it was seen there, and not before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from gateway.adapters.audit_outbox import Outbox, Waiting
from gateway.errors import GatewayError
from gateway.ports import Clock, StateStore, utcnow

log = logging.getLogger(__name__)

# So much of a segment's end is read back after it was put: it tells that all of it is there.
_TAIL: Final = 4096
_PAUSES_FOR_OTHERS: Final = 8
_NOT_SHIPPED: Final = "an audit segment could not be shipped"
_SET_ASIDE: Final = "an audit segment is kept here for now: others can be shipped, it cannot"
# From so many failures on a segment waits behind the others: it may be the segment and not the store.
_TRIES: Final = 3
# At a stop there is what requests leave of the grace, and so much in any case: they may take all of it, and
# the last segment is closed behind them.
RESERVE: Final = timedelta(seconds=5)
_BETWEEN_LAST_TRIES: Final = 0.25


class ShippingFailure(StrEnum):
    # The store does not answer, or not what was asked.
    STORE = "store"
    # Something else is there under the segment's name.
    CONFLICT = "conflict"
    # The disk does not obey.
    DISK = "disk"


class ShippingMetrics(Protocol):
    def count_shipped(self, size: int) -> None:
        """Count a segment that is where it should be."""

    def count_shipping_failure(self, failure: ShippingFailure) -> None: ...

    def set_shipping_backlog(self, size: int, age: timedelta) -> None:
        """Tell what waits to be shipped, and for how long the oldest has waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippingPace:
    # How often the directory is looked at.
    interval: timedelta = timedelta(seconds=5)
    # The longest that one segment may take; what became of it is found out at the next attempt.
    patience: timedelta = timedelta(minutes=2)
    # Between attempts while the store fails: doubled from the first to the longest.
    first_pause: timedelta = timedelta(seconds=1)
    longest_pause: timedelta = timedelta(minutes=1)
    # How long a segment that fails while others do not is left alone.
    aside: timedelta = timedelta(minutes=10)


PACE: Final = ShippingPace()


class Shipper:
    """Moves what waits in an outbox to a store. Of processes that share a directory one does so at a time."""

    def __init__(
        self,
        outbox: Outbox,
        landing: StateStore,
        metrics: ShippingMetrics,
        *,
        pace: ShippingPace = PACE,
        clock: Clock = utcnow,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._outbox = outbox
        self._landing = landing
        self._metrics = metrics
        self._pace = pace
        self._clock = clock
        self._sleep = sleep
        self._failures = 0
        # Whether another process ships from the directory.
        self._is_elsewhere = False
        # They are told of once; what is wrong with them takes a person.
        self._conflicting: set[str] = set()
        # Failures of each segment, and until when it is left alone.
        self._tries: Counter[str] = Counter()
        self._aside: dict[str, datetime] = {}

    async def run(self) -> None:
        """Ship whatever is closed, for ever."""
        while True:
            await self.ship_all()
            await self._sleep(self._pause().total_seconds())

    async def ship_all(self) -> bool:
        """Try each segment that waits once; tell whether none is left that another try would help."""
        try:
            self._is_elsewhere = not await asyncio.to_thread(self._outbox.take)
            if self._is_elsewhere:
                # Another process of this directory ships, and tells of what waits.
                self._metrics.set_shipping_backlog(0, timedelta(0))
                return False
            return await self._ship(await asyncio.to_thread(self._outbox.waiting))
        except OSError as exc:
            self._fail(ShippingFailure.DISK, "the audit log's directory cannot be read", exc)
            return False
        except Exception as exc:  # noqa: BLE001 -- whatever a store raises, the next round may fare better
            self._fail(ShippingFailure.STORE, _NOT_SHIPPED, exc)
            return False

    async def ship_rest(self, pause: float) -> None:
        """Ship until nothing waits that another try would help.

        Another process that ships from the directory may be about to end as well: it is given a few pauses,
        and if it is still there it ships what is left.
        """
        for_others = _PAUSES_FOR_OTHERS
        while not await self.ship_all() and for_others:
            for_others -= self._is_elsewhere
            await self._sleep(pause)

    async def close(self) -> None:
        """Let another process ship."""
        with suppress(OSError):
            await asyncio.to_thread(self._outbox.release)

    async def _ship(self, waiting: Sequence[Waiting]) -> bool:
        left = {segment.name: segment for segment in waiting}
        self._tell(left.values())
        has_shipped = False
        for segment in self._in_turn(waiting):
            is_there = await self._try(segment)
            if is_there is None and not (has_shipped and self._tries[segment.name] >= _TRIES):
                # The next one would fare no better.
                return False
            if is_there is None:
                self._set_aside(segment)
            elif is_there:
                has_shipped = True
                left.pop(segment.name)
                self._forget(segment)
            self._tell(left.values())
        return not left.keys() - self._conflicting - self._aside.keys()

    def _in_turn(self, waiting: Sequence[Waiting]) -> Sequence[Waiting]:
        """Return what is to be tried: the oldest first, and those that failed often behind the others."""
        now = self._clock()
        tried = [
            segment
            for segment in waiting
            if segment.name not in self._conflicting and self._aside.get(segment.name, now) <= now
        ]
        return sorted(tried, key=lambda segment: self._tries[segment.name] // _TRIES)

    async def _try(self, segment: Waiting) -> bool | None:
        """Ship a segment and tell whether it is where it should be; None when that failed."""
        try:
            async with asyncio.timeout(self._pace.patience.total_seconds()):
                return await self._ship_one(segment)
        except Exception as exc:  # noqa: BLE001 -- whatever a store raises, the next round may fare better
            is_disk = isinstance(exc, OSError) and not isinstance(exc, TimeoutError)
            self._tries[segment.name] += 1
            self._fail(ShippingFailure.DISK if is_disk else ShippingFailure.STORE, _NOT_SHIPPED, exc, segment)
        return None

    def _set_aside(self, segment: Waiting) -> None:
        level = logging.DEBUG if segment.name in self._aside else logging.ERROR
        log.log(level, _SET_ASIDE, extra={"segment": segment.key, "reason": f"{_TRIES} failures or more"})
        self._aside[segment.name] = self._clock() + self._pace.aside
        # The store is well.
        self._failures = 0

    def _forget(self, segment: Waiting) -> None:
        self._tries.pop(segment.name, None)
        self._aside.pop(segment.name, None)
        self._failures = 0

    async def _ship_one(self, segment: Waiting) -> bool:
        """Bring a segment to its place and remove it here; tell whether that was done."""
        content = await asyncio.to_thread(self._outbox.read, segment)
        if content is None:
            # Removed by whoever else looks after the directory.
            return True
        if await self._landing.create(segment.key, content) is None:
            # It was there before: of an attempt whose answer was lost, or of a process that died since.
            found = await self._landing.get(segment.key)
            is_there, is_other = found is not None and found.content == content, found is not None
        else:
            start = max(len(content) - _TAIL, 0)
            end = await self._landing.get_range(segment.key, start, _TAIL + 1)
            is_there, is_other = end == content[start:], bool(end) and end != content[start:]
        if is_there:
            await asyncio.to_thread(self._outbox.remove, segment)
            self._metrics.count_shipped(len(content))
            return True
        if is_other:
            self._conflicting.add(segment.name)
            message = "an audit segment is kept here: another one has its name where it should go"
            self._fail(ShippingFailure.CONFLICT, message, None, segment)
        else:
            self._fail(ShippingFailure.STORE, "an audit segment is not where it was put", None, segment)
        return False

    def _fail(
        self, failure: ShippingFailure, message: str, exc: Exception | None, segment: Waiting | None = None
    ) -> None:
        self._metrics.count_shipping_failure(failure)
        self._failures += failure is not ShippingFailure.CONFLICT
        # What an SDK says may hold more than its kind.
        reason = exc.message if isinstance(exc, GatewayError) else type(exc).__name__ if exc else str(failure)
        facts = {"segment": segment.key if segment else "", "reason": reason}
        # A store that is away for an hour is told of once, and not each time.
        level = logging.ERROR if failure is ShippingFailure.CONFLICT or self._failures == 1 else logging.DEBUG
        log.log(level, message, extra=facts)

    def _pause(self) -> timedelta:
        if not self._failures:
            return self._pace.interval
        return min(self._pace.first_pause * (1 << min(self._failures - 1, 20)), self._pace.longest_pause)

    def _tell(self, waiting: Iterable[Waiting]) -> None:
        segments = list(waiting)
        oldest = min((segment.closed_at for segment in segments), default=None)
        age = timedelta(0) if oldest is None else max(self._clock() - oldest, timedelta(0))
        self._metrics.set_shipping_backlog(sum(segment.size for segment in segments), age)


class Shipping:
    """Ships while its block runs, and tries once more at the end, when the last segment is closed."""

    def __init__(self, shipper: Shipper, grace: timedelta, reserve: timedelta = RESERVE) -> None:
        self._shipper = shipper
        self._grace = grace
        self._reserve = reserve
        self._until: float | None = None

    def begin_stop(self) -> None:
        """Count the grace from here on, as it is counted for requests under way."""
        self._until = asyncio.get_running_loop().time() + self._grace.total_seconds()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Shipping]:
        task = asyncio.create_task(self._shipper.run())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self._last_try()

    async def _last_try(self) -> None:
        loop = asyncio.get_running_loop()
        until = self._until if self._until is not None else loop.time() + self._grace.total_seconds()
        try:
            async with asyncio.timeout_at(max(until, loop.time() + self._reserve.total_seconds())):
                await self._shipper.ship_rest(_BETWEEN_LAST_TRIES)
        except TimeoutError:
            log.warning("some audit segments are not shipped; the next start goes on with them")
        finally:
            await self._shipper.close()
