"""An issuer that remembers: each credential is made once for its window, and never handed out too late."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from gateway.adapters.cache.chance import Chance, chance
from gateway.adapters.cache.codec import CREDENTIALS
from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.flight import Flights
from gateway.adapters.cache.key import marks_of, window_key
from gateway.adapters.cache.line import Line, is_short, left, new_line
from gateway.adapters.cache.mint import Mint
from gateway.adapters.cache.replicas import Minted, Obtained, Replicas, obtained
from gateway.adapters.cache.rhythm import Turn, least_of
from gateway.adapters.cache.sealed import Address
from gateway.adapters.credential_metrics import Source, StorageSeries
from gateway.domain.credential import Credential
from gateway.domain.kept import Kept
from gateway.domain.scope import Scope
from gateway.errors import GatewayError, Unavailable
from gateway.ports import Clock

# Ahead of time, so that a few at a time are soon enough.
_MOST_REFRESHES: Final = 8
# While an old credential does, a provider that fails is asked so often for each key.
_PAUSE: Final = 5.0
# What was good when it was chosen may be late by so much when it is counted.
_LEEWAY: Final = timedelta(seconds=10)

Memory = Kept[tuple[bytes | None, Scope], Line]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all cached issuers of a process have in common."""

    memory: Memory
    # None where there is no Redis.
    replicas: Replicas | None
    clock: Clock
    flights: Flights[Obtained[Credential]] = field(default_factory=Flights)
    refreshes: Flights[Obtained[Credential]] = field(default_factory=Flights)
    monotonic: Callable[[], float] = time.monotonic
    chance: Chance = chance


class CachedIssuer:
    """Is the issuer that it wraps, and asks it as seldom as the life of its credentials allows."""

    def __init__(
        self,
        mint: Mint,
        shared: Shared,
        *,
        fingerprint: Fingerprint,
        series: StorageSeries,
        names_recipients: bool,
    ) -> None:
        self.names_recipients = names_recipients
        self._mint = mint
        self._shared = shared
        self._fingerprint = fingerprint
        self._series = series
        self._find = shared.memory.find
        self._clock = shared.clock

    async def issue(self, scope: Scope) -> Credential:
        now = self._clock()
        line = self._find((self._fingerprint.value, scope))
        # The way of nearly every request: nothing is computed, and nobody is waited for.
        if (
            line is not None
            and line.hot is not None
            and line.hot_from <= now < line.hot_until
            and not self._fingerprint.is_due
        ):
            self._series.count_request(Source.MEMORY, line.hot.expires_at - now)
            return line.hot
        credential, source = await self._issue(scope, now)
        remains = left(credential, self._clock())
        self._series.count_request(source, remains)
        if remains < least_of(scope.life) - _LEEWAY:
            self._series.near_end += 1
        return credential

    async def _issue(self, scope: Scope, now: datetime) -> tuple[Credential, Source]:
        line = await self._line(scope)
        turn = line.rhythm.turn_at(now)
        held = line.find(turn, now)
        if held is not None:
            line.heat(held, self._shared.chance)
            self._refresh_ahead(scope, line, turn, now)
            return held.credential, Source.MEMORY
        if self._is_waiting(line) and (stale := line.find_stale(now)):
            return stale, Source.STALE
        try:
            return await self._join(scope, line, turn)
        except Unavailable:
            stale = await self._find_stale(scope, line, turn)
            if stale is None:
                raise
            line.paused_until = self._shared.monotonic() + _PAUSE
            return stale, Source.STALE

    async def _line(self, scope: Scope) -> Line:
        fingerprint = await self._fingerprint.settled()
        return self._find((fingerprint, scope)) or new_line(fingerprint, scope)

    def _is_waiting(self, line: Line) -> bool:
        return self._mint.backoff.wait is not None or self._shared.monotonic() < line.paused_until

    async def _join(self, scope: Scope, line: Line, turn: Turn) -> tuple[Credential, Source]:
        """Return what is being obtained for all who ask for it, which goes on when one of them leaves."""
        flights, key = self._shared.flights, (id(self), line.key, turn.end)
        task = flights.find(key) or self._shared.refreshes.find(key)
        if task is not None:
            return (await asyncio.shield(task)).value, Source.MEMORY
        fresh = await asyncio.shield(flights.start(key, lambda: self._obtain(scope, line, turn)))
        return fresh.value, fresh.source

    async def _obtain(self, scope: Scope, line: Line, turn: Turn) -> Obtained[Credential]:
        async def mint() -> Minted[Credential]:
            return await self._mint.issue(scope, line.rhythm)

        if self._shared.replicas is None:
            fresh = obtained(await mint())
        else:
            fresh = await self._shared.replicas.obtain(self._address(scope, line, turn), mint)
        if fresh.is_lasting:
            self._keep(scope, line, fresh.value, turn)
        return fresh

    def _keep(self, scope: Scope, line: Line, credential: Credential, turn: Turn) -> None:
        line.hold(credential, turn)
        self._shared.memory.keep((line.fingerprint, scope), line, line.size())

    def _address(self, scope: Scope, line: Line, turn: Turn) -> Address[Credential]:
        return Address(
            key=window_key(line.key, turn.end),
            marks=marks_of(self._series.name, scope.recipient),
            codec=CREDENTIALS,
            count_wait=self._series.count_lease_wait,
            accepts=lambda credential: not is_short(credential, line.rhythm, self._clock()),
        )

    async def _find_stale(self, scope: Scope, line: Line, turn: Turn) -> Credential | None:
        stale = line.find_stale(self._clock())
        if stale is not None or self._shared.replicas is None:
            return stale
        before = line.rhythm.turn_at(turn.start - line.rhythm.width)
        least = line.rhythm.stale_least
        address = replace(
            self._address(scope, line, before),
            accepts=lambda credential: left(credential, self._clock()) >= least,
        )
        found = (await self._shared.replicas.sealed.look(address)).value
        if found is not None:
            self._keep(scope, line, found, before)
        return found

    def _refresh_ahead(self, scope: Scope, line: Line, turn: Turn, now: datetime) -> None:
        """Begin to obtain the next window's credential, so that nobody waits for it when it is needed."""
        following = Turn(start=turn.end, end=turn.end + line.rhythm.width)
        flights, key = self._shared.refreshes, (id(self), line.key, following.end)
        if now < line.refresh_at or line.find(following, now) or flights.find(key):
            return
        if len(flights) >= _MOST_REFRESHES or self._is_waiting(line):
            return
        self._series.refreshes += 1
        flights.start(key, lambda: self._refresh(scope, line, following))

    async def _refresh(self, scope: Scope, line: Line, turn: Turn) -> Obtained[Credential]:
        try:
            return await self._obtain(scope, line, turn)
        except Exception as exc:
            _tell(self._series.name, exc)
            # Tried again after half of what is left, and by those who need it.
            line.refresh_at += (turn.start - line.refresh_at) / 2
            raise


def _tell(storage: str, exc: Exception) -> None:
    if isinstance(exc, GatewayError):
        log.debug("a credential of %s was not refreshed ahead", storage)
        return
    # Where it failed, and not its words: those may repeat what a provider answered.
    stack = "".join(traceback.format_tb(exc.__traceback__))
    log.error("a credential of %s was not refreshed ahead: %s\n%s", storage, type(exc).__name__, stack)
