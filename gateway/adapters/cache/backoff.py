"""How long a storage that throttles us is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from gateway.adapters.cache.chance import Chance

_FIRST: Final = 1.0
_LONGEST: Final = 60.0
# A provider that asks for more is asked again all the same: it may have said so in error.
_LONGEST_ASKED: Final = 300.0
_STEPS: Final = 6
# How soon those may try again who came while one was finding out.
_SOON: Final = timedelta(seconds=1)


class Backoff:
    """Doubles with each refusal; after its time, one attempt at a time finds out whether it is over.

    By a clock that is never set: a wall clock that jumps must not lengthen it.
    """

    def __init__(self, chance: Chance, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._chance = chance
        self._monotonic = monotonic
        self._refusals = 0
        self._until = 0.0
        self._is_trying = False

    @property
    def wait(self) -> timedelta | None:
        """Return how long to leave the storage alone, or None."""
        if not self._refusals:
            return None
        left = self._until - self._monotonic()
        if left > 0:
            return timedelta(seconds=left)
        return _SOON if self._is_trying else None

    def begin(self) -> int:
        """Note an attempt, which ``wait`` has allowed; return what its success is told with."""
        self._is_trying = True
        return self._refusals

    def end(self) -> None:
        """Note the end of an attempt that says nothing about throttling."""
        self._is_trying = False

    def succeed(self, begun: int) -> None:
        """Forget the refusals, unless one came while the attempt was under way."""
        if begun == self._refusals:
            self._refusals = 0

    def refuse(self, asked: timedelta) -> None:
        """Note that the storage has asked to be called less often."""
        self._is_trying = False
        pause = min(_FIRST * 2 ** min(self._refusals, _STEPS), _LONGEST)
        pause *= 0.5 + self._chance() / 2
        self._refusals += 1
        until = self._monotonic() + max(pause, min(asked.total_seconds(), _LONGEST_ASKED))
        self._until = max(self._until, until)
