"""A signer that remembers: what is asked for again in a window is not signed again."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Final

from gateway.adapters.cache.aside import aside
from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.flight import Flights
from gateway.adapters.cache.key import marks_of, paths_key, place_key
from gateway.adapters.cache.promise import before, least_in_need, least_left
from gateway.adapters.cache.replicas import Minted, Obtained, Replicas, obtained
from gateway.adapters.cache.sealed import Address
from gateway.adapters.cache.url_codec import SIGNATURES
from gateway.adapters.cache.url_memory import Asked, Files, Memory, Segments, UrlMemory
from gateway.adapters.cache.url_mint import UrlMint
from gateway.adapters.credential_metrics import Source
from gateway.adapters.url_metrics import UrlSeries, UrlSource
from gateway.config.redis import UrlsInRedis
from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.errors import Unavailable
from gateway.ports import Clock, Signatures, Signer, SigningCost

_SOURCES: Final = {Source.REDIS: UrlSource.REDIS, Source.MINTED: UrlSource.SIGNED}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUrls:
    """What all cached signers of a process have in common."""

    memory: Memory
    # None where there is no Redis.
    replicas: Replicas | None
    in_redis: UrlsInRedis
    # What URLs depend on besides the settings of their storage.
    base: bytes = field(repr=False)
    clock: Clock
    flights: Flights[Obtained[Signatures]] = field(default_factory=Flights)


class CachedSigner:
    """Is the signer that it wraps, and asks it for what nobody has asked for in the window."""

    def __init__(
        self,
        signer: Signer,
        mint: UrlMint,
        shared: SharedUrls,
        *,
        storage: str,
        fingerprint: Fingerprint,
        series: UrlSeries,
    ) -> None:
        self.cost = signer.cost
        self.has_sessions = signer.has_sessions
        self._mint = mint
        self._shared = shared
        self._fingerprint = fingerprint
        self._series = series
        self._marks = marks_of(storage)
        self._is_cheap = signer.cost is SigningCost.HASH
        self._memory: UrlMemory = Segments(shared.memory) if self._is_cheap else Files(shared.memory)

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        # What costs next to nothing is remembered only where it is sure to be asked for again.
        if not paths.joined or (self._is_cheap and not paths.is_segment):
            signatures, source = await self._mint.sign(table, paths, window), UrlSource.SIGNED
        else:
            signatures, source = await self._find(await self._asked(table, paths, window))
        self._series.count_urls(source, len(paths))
        return signatures

    async def _asked(self, table: Location, paths: Paths, window: Window) -> Asked:
        digest = await aside(len(paths.joined), lambda: hashlib.sha256(paths.joined).digest())
        place = place_key(await self._fingerprint.settled(), self._shared.base, table, window)
        return Asked(table=table, paths=paths, window=window, place=place, key=paths_key(place, digest))

    async def _find(self, asked: Asked) -> tuple[Signatures, UrlSource]:
        found = self._memory.find(asked, least_left(asked.window), self._shared.clock())
        if found is not None:
            return found, UrlSource.MEMORY
        if self._mint.provider.is_resting and (stale := await self._find_stale(asked)) is not None:
            return stale, UrlSource.STALE
        try:
            return await self._join(asked)
        except Unavailable:
            stale = await self._find_stale(asked)
            if stale is None:
                raise
            return stale, UrlSource.STALE

    async def _find_stale(self, asked: Asked) -> Signatures | None:
        """Return what was signed in the window before, when nothing better can be had."""
        old = await self._asked(asked.table, asked.paths, before(asked.window))
        return self._memory.find(old, least_in_need(asked.window), self._shared.clock())

    async def _join(self, asked: Asked) -> tuple[Signatures, UrlSource]:
        """Return what is being obtained for all who ask for it, which goes on when one of them leaves."""
        flights, flight = self._shared.flights, (id(self), asked.key)
        task = flights.find(flight)
        if task is not None:
            return (await asyncio.shield(task)).value, UrlSource.MEMORY
        signatures = await asyncio.shield(flights.start(flight, lambda: self._obtain(asked)))
        return signatures.value, _SOURCES[signatures.source]

    async def _obtain(self, asked: Asked) -> Obtained[Signatures]:
        async def mint() -> Minted[Signatures]:
            return await self._mint.complete(asked, self._memory.known(asked, self._shared.clock()))

        replicas = self._shared.replicas
        if replicas is None or not self._is_shared(asked):
            signatures = obtained(await mint())
        elif self.cost is SigningCost.CALL:
            signatures = await replicas.obtain(self._address(asked), mint)
        else:
            signatures = await replicas.share(self._address(asked), mint)
        if signatures.is_lasting:
            self._memory.keep(asked, signatures.value)
        return signatures

    def _is_shared(self, asked: Asked) -> bool:
        """Tell whether another replica's signatures are worth a way to Redis."""
        match self._shared.in_redis:
            case UrlsInRedis.ALWAYS:
                return True
            case UrlsInRedis.NEVER:
                return False
            case UrlsInRedis.AUTO:
                return not self._is_cheap

    def _address(self, asked: Asked) -> Address[Signatures]:
        count, least = len(asked.paths), least_left(asked.window)
        return Address(
            key=asked.key,
            marks=self._marks,
            codec=SIGNATURES,
            accepts=lambda found: len(found) == count and found.expires_at - self._shared.clock() >= least,
            count_wait=self._series.count_lease_wait,
        )
