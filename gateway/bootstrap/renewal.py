"""Takes up renewed certificates as the process runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from gateway.adapters.certificate_metrics import CertificateMetrics, Outcome
from gateway.bootstrap.reload import Signature, file_signature
from gateway.errors import GatewayError

_INTERVAL: Final = timedelta(seconds=2)

# Takes up what the files hold; tells whether that is settled, or is to be tried again.
TakeUp = Callable[[], Awaitable[bool]]
Signatures = tuple[Signature, ...]

log = logging.getLogger(__name__)


@dataclass
class _Watched:
    use: str
    files: Sequence[Path]
    take_up: TakeUp
    # As they were when they were last taken up, or refused; None while they wait.
    settled: Signatures | None
    # As they were at the last look.
    seen: Signatures = ()
    # As they were when they were first found to open no connection yet.
    waiting: Signatures | None = None


class Renewals:
    """Looks at certificate files every other second, and has those that changed taken up.

    Files of one certificate are written one after the other: they are read once they stay the same from one
    look to the next. What is unsound even so is warned of once, and what was in force stays in force.
    """

    def __init__(self, metrics: CertificateMetrics, interval: timedelta = _INTERVAL) -> None:
        self._metrics = metrics
        self._interval = interval
        self._watched: list[_Watched] = []

    def add(self, use: str, files: Sequence[Path], before: Signatures, take_up: TakeUp) -> None:
        """Watch files; ``before`` is how they were before they were read, so that no change is overlooked."""
        self._watched.append(_Watched(use, files, take_up, before))
        self._metrics.show(use)

    async def watch(self) -> None:
        while self._watched:
            await asyncio.sleep(self._interval.total_seconds())
            for watched in self._watched:
                await self._look(watched)

    async def _look(self, watched: _Watched) -> None:
        now = await asyncio.to_thread(signatures, watched.files)
        before, watched.seen = watched.seen, now
        if now == watched.settled or now != before:
            return
        try:
            if await watched.take_up():
                self._settle(watched, Outcome.SUCCESS)
                log.info("the renewed certificate for %s is in use", watched.use)
            elif watched.waiting != now:
                self._wait(watched)
        except Exception as exc:  # noqa: BLE001 -- whatever fails here, the next change must still be seen
            self._settle(watched, Outcome.FAILURE)
            self._refuse(watched, exc)

    def _settle(self, watched: _Watched, outcome: Outcome) -> None:
        watched.settled, watched.waiting = watched.seen, None
        self._metrics.count_renewal(watched.use, outcome)

    def _wait(self, watched: _Watched) -> None:
        # Not settled even if the files become again what they were: some connections may be new already.
        watched.settled, watched.waiting = None, watched.seen
        self._metrics.count_renewal(watched.use, Outcome.WAITING)
        log.warning(
            "the renewed certificate for %s opens no connection to some service yet, so calls to it go on "
            "with the old one: does the other side run, and trust its authority?",
            watched.use,
        )

    def _refuse(self, watched: _Watched, exc: Exception) -> None:
        # Of faults in the files, the message is all; of our own, the stack is.
        ours = None if isinstance(exc, GatewayError | OSError) else exc
        log.warning(
            "the renewed certificate for %s is refused, the old one stays in use: %s",
            watched.use,
            exc,
            exc_info=ours,
        )


def signatures(files: Sequence[Path]) -> Signatures:
    """Return what tells whether files have changed."""
    return tuple(file_signature(file) for file in files)
