"""Asks a provider, in bounded time, and leaves it alone when it has asked for that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar

from gateway.adapters.cache.backoff import Backoff
from gateway.adapters.credential_metrics import Outcome
from gateway.errors import GatewayError, Unavailable

# A provider that takes longer holds up everybody who asks for the same.
LONGEST: Final = timedelta(seconds=30)
# While something old does, a provider that fails is asked so often.
_PAUSE: Final = 5.0

T = TypeVar("T")
# Takes what became of an attempt, and its seconds.
Count = Callable[[Outcome, float], None]


class Provider:
    """What one kind of thing is asked of for one storage."""

    def __init__(
        self,
        backoff: Backoff,
        count: Count,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        longest: timedelta = LONGEST,
    ) -> None:
        self.backoff = backoff
        self._count = count
        self._monotonic = monotonic
        self._longest = longest
        self._paused_until = 0.0

    @property
    def is_resting(self) -> bool:
        """Tell whether whoever has something old should make do with it for now."""
        return self.backoff.wait is not None or self._monotonic() < self._paused_until

    async def ask(
        self,
        call: Callable[[], Awaitable[T]],
        judge: Callable[[T], Outcome],
        longest: timedelta | None = None,
    ) -> tuple[T, Outcome]:
        """Return what the provider gives, and what to think of it.

        Who bounds each of many calls by itself, and has them wait for each other, says how long all may take.
        """
        wait = self.backoff.wait
        if wait is not None:
            raise Unavailable("the storage's provider is asked too often; try again later", retry_after=wait)
        began, begun = self._monotonic(), self.backoff.begin()
        outcome = Outcome.FAILED
        try:
            given = await self._bounded(call, self._longest if longest is None else longest)
            self.backoff.succeed(begun)
            outcome = judge(given)
        except GatewayError as exc:
            outcome = outcome_of(exc)
            self._rest(exc)
            raise
        finally:
            self.backoff.end()
            self._count(outcome, self._monotonic() - began)
        return given, outcome

    async def _bounded(self, call: Callable[[], Awaitable[T]], longest: timedelta) -> T:
        try:
            async with asyncio.timeout(longest.total_seconds()):
                return await call()
        except TimeoutError:
            raise Unavailable("the storage's provider does not answer in time; try again later") from None

    def _rest(self, exc: GatewayError) -> None:
        if not isinstance(exc, Unavailable):
            return
        self._paused_until = self._monotonic() + _PAUSE
        if exc.retry_after is not None:
            self.backoff.refuse(exc.retry_after)


def outcome_of(exc: BaseException) -> Outcome:
    """Return what became of an attempt that failed."""
    if isinstance(exc, Unavailable):
        return Outcome.UNAVAILABLE if exc.retry_after is None else Outcome.THROTTLED
    return Outcome.REFUSED if isinstance(exc, GatewayError) else Outcome.FAILED
