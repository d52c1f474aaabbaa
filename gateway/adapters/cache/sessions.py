"""Sessions that are remembered: what a storage's URLs are signed with is minted once for its window."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from gateway.adapters.cache.codec import CREDENTIALS
from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.flight import Flights
from gateway.adapters.cache.key import marks_of, session_key
from gateway.adapters.cache.promise import before, least_in_need, least_wanted
from gateway.adapters.cache.provider import Provider
from gateway.adapters.cache.replicas import Minted, Obtained, Replicas, obtained
from gateway.adapters.cache.sealed import Address
from gateway.adapters.credential_metrics import Outcome, Source
from gateway.adapters.url_metrics import UrlSeries
from gateway.domain.credential import Credential
from gateway.domain.kept import Kept
from gateway.domain.window import Window
from gateway.errors import Unavailable
from gateway.ports import Clock

# About what one takes. They are few: one for each storage and window.
_BYTES: Final = 4096
_MEMORY: Final = 2048 * _BYTES

# Of a session that is too short for what URLs are promised, the last of so many parts is not signed with.
_PARTS: Final = 3

MintSession = Callable[[], Awaitable[Credential]]


@dataclass(frozen=True, slots=True)
class _Held:
    session: Credential = field(repr=False)
    # How much of it must be left for it to be signed with in its own window.
    least: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSessions:
    """What the sessions of all storages of a process have in common."""

    # None where there is no Redis.
    replicas: Replicas | None
    clock: Clock
    memory: Kept[bytes, _Held] = field(default_factory=lambda: Kept(_MEMORY))
    flights: Flights[Obtained[Credential]] = field(default_factory=Flights)


class CachedSessions:
    """Is the port ``Sessions`` of one storage."""

    def __init__(
        self,
        provider: Provider,
        shared: SharedSessions,
        *,
        storage: str,
        fingerprint: Fingerprint,
        series: UrlSeries,
    ) -> None:
        self._provider = provider
        self._shared = shared
        self._fingerprint = fingerprint
        self._series = series
        self._marks = marks_of(storage)

    async def obtain(self, window: Window, mint: MintSession) -> Credential:
        fingerprint = await self._fingerprint.settled()
        key = session_key(fingerprint, window)
        held = self._shared.memory.find(key)
        if held is not None and self._left(held.session) >= held.least:
            return self._counted(held.session, Source.MEMORY)
        stale = self._find_stale(fingerprint, window)
        if stale is not None and self._provider.is_resting:
            return self._counted(stale, Source.STALE)
        try:
            return await self._join(key, window, mint)
        except Unavailable:
            if stale is None or self._left(stale) < least_in_need(window):
                raise
            return self._counted(stale, Source.STALE)

    async def _join(self, key: bytes, window: Window, mint: MintSession) -> Credential:
        """Return what is being obtained for all who ask for it, which goes on when one of them leaves."""
        flights, flight = self._shared.flights, (id(self), key)
        task = flights.find(flight)
        if task is not None:
            return self._counted((await asyncio.shield(task)).value, Source.MEMORY)
        session = await asyncio.shield(flights.start(flight, lambda: self._obtain(key, window, mint)))
        return self._counted(session.value, session.source)

    async def _obtain(self, key: bytes, window: Window, mint: MintSession) -> Obtained[Credential]:
        async def minted() -> Minted[Credential]:
            return await self._mint(window, mint)

        if self._shared.replicas is None:
            session = obtained(await minted())
        else:
            session = await self._shared.replicas.obtain(self._address(key, window), minted)
        if session.is_lasting:
            self._shared.memory.keep(key, self._held(session.value, window), _BYTES)
        return session

    def _held(self, session: Credential, window: Window) -> _Held:
        least, left = _least(session, window), self._left(session)
        # A provider that gives little gives no more when it is asked again at once: half of it is used first.
        return _Held(session, least if left >= least else max(least_in_need(window), left / 2))

    async def _mint(self, window: Window, mint: MintSession) -> Minted[Credential]:
        session, outcome = await self._provider.ask(mint, lambda given: self._judge(given, window))
        if outcome is Outcome.EXPIRED:
            raise Unavailable("what the storage signs with has expired already; try again later")
        if self._left(session) < least_in_need(window):
            return Minted(session, None)
        # One whose clock is late still signs with it when the window has turned for the others.
        return Minted(session, min(session.expires_at, window.expires_at) - self._shared.clock())

    def _judge(self, session: Credential, window: Window) -> Outcome:
        if session.expires_at <= self._shared.clock():
            return Outcome.EXPIRED
        return Outcome.SHORT if session.expires_at < window.expires_at else Outcome.MINTED

    def _find_stale(self, fingerprint: bytes, window: Window) -> Credential | None:
        """Return what still signs when nothing better can be had, of this window or the one before."""
        keys = (session_key(fingerprint, each) for each in (window, before(window)))
        found = [held.session for key in keys if (held := self._shared.memory.find(key)) is not None]
        useful = [session for session in found if self._left(session) >= least_in_need(window)]
        return max(useful, key=lambda session: session.expires_at, default=None)

    def _left(self, session: Credential) -> timedelta:
        return session.expires_at - self._shared.clock()

    def _address(self, key: bytes, window: Window) -> Address[Credential]:
        return Address(
            key=key,
            marks=self._marks,
            codec=CREDENTIALS,
            # Also one that ends before its URLs would: within a window, all replicas sign with the same.
            accepts=lambda session: self._left(session) >= _least(session, window),
            count_wait=self._series.count_lease_wait,
        )

    def _counted(self, session: Credential, source: Source) -> Credential:
        self._series.count_session(source)
        return session


def _least(session: Credential, window: Window) -> timedelta:
    """Return how much must be left of a session: what URLs are promised, or a part of what was given."""
    given = session.expires_at - window.start
    return max(least_in_need(window), min(least_wanted(window), given / _PARTS))
