"""One mint for each key across all replicas, its result sealed where all of them find it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from gateway.adapters.cache.chance import Chance, chance
from gateway.adapters.cache.codec import Packed, pack, unpack
from gateway.adapters.cache.key import epoch_key, index_key
from gateway.adapters.cache.shared import Claim, ClaimState, Lease, SharedCache
from gateway.adapters.cache.vault import Vault
from gateway.adapters.credential_metrics import CredentialMetrics, RedisError, Source, StorageSeries
from gateway.domain.credential import Credential

_TOKEN_BYTES: Final = 16
_FIRST_POLL, _LONGEST_POLL = 0.02, 0.25
# Who has waited for so many leases goes ahead alone: a live leader would have been done.
_LEASES_WAITED: Final = 3
# So many useless values in a row are somebody's doing.
_MOST_USELESS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a credential belongs."""

    # With its window.
    key: bytes
    # What it can be dropped by.
    marks: tuple[bytes, ...]
    series: StorageSeries
    # Whether a credential that is found may be handed out.
    accepts: Callable[[Credential], bool]


@dataclass(frozen=True, slots=True)
class Minted:
    credential: Credential
    # How long others may find it; None: it is not for others.
    life: timedelta | None


@dataclass(frozen=True, slots=True)
class Obtained:
    credential: Credential
    source: Source
    # Whether it may be kept.
    is_lasting: bool = True


class Replicas:
    """Finds what another replica has made, waits for what one is making, or lets the caller make it."""

    def __init__(
        self,
        cache: SharedCache,
        vault: Vault,
        metrics: CredentialMetrics,
        *,
        lease_time: timedelta,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Chance = chance,
    ) -> None:
        self._cache = cache
        self._vault = vault
        self._metrics = metrics
        self._lease_time = lease_time
        self._sleep = sleep
        self._chance = chance

    async def obtain(self, address: Address, mint: Callable[[], Awaitable[Minted]]) -> Obtained:
        lease = Lease(name=self._vault.name(address.key), token=secrets.token_bytes(_TOKEN_BYTES))
        poll, waited, useless = _FIRST_POLL, 0.0, 0
        epochs: tuple[bytes, ...] = ()
        longest = _LEASES_WAITED * self._lease_time.total_seconds()
        while waited < longest and useless < _MOST_USELESS:
            claim, epochs = await self._look(address, lease)
            if claim.state is ClaimState.FOUND:
                credential = self._open(address, claim.value, epochs)
                if credential is not None:
                    return Obtained(credential, Source.REDIS)
                lease, useless = replace(lease, seen=claim.value), useless + 1
            elif claim.state is ClaimState.TAKEN:
                address.series.lease_waits += waited == 0
                pause = poll * (0.5 + self._chance() / 2)
                await self._sleep(pause)
                waited, poll = waited + pause, min(poll * 2, _LONGEST_POLL)
            elif claim.state is ClaimState.MINE:
                return await self._lead(address, lease, epochs, mint)
            else:
                return _obtained(await mint())
        minted = await mint()
        if minted.life is not None:
            # Stored only where there is still none: the lease is another's.
            await self._publish(address, lease, Packed(minted.credential, epochs), minted.life)
        return _obtained(minted)

    async def find(self, address: Address) -> Credential | None:
        """Return what another replica has made, without waiting or making it."""
        names = [self._vault.name(address.key), *self._epoch_names(address)]
        values = await self._cache.find(names)
        if values is None or values[0] is None:
            return None
        return self._open(address, values[0], _epochs(values[1:]))

    async def _look(self, address: Address, lease: Lease) -> tuple[Claim, tuple[bytes, ...]]:
        # The epochs are known before anything is minted: what was asked for before a drop says so.
        claim, values = await asyncio.gather(
            self._cache.claim(lease, self._lease_time), self._cache.find(self._epoch_names(address))
        )
        if values is None:
            if claim.state is ClaimState.MINE:
                await self._cache.release(lease)
            return Claim(ClaimState.OUT), ()
        return claim, _epochs(values)

    async def _lead(
        self,
        address: Address,
        lease: Lease,
        epochs: tuple[bytes, ...],
        mint: Callable[[], Awaitable[Minted]],
    ) -> Obtained:
        is_published = False
        try:
            found = await self._find_rotated(address, epochs)
            if found is not None:
                return found
            async with self._renewing(lease):
                minted = await mint()
            if minted.life is not None:
                await self._publish(address, lease, Packed(minted.credential, epochs), minted.life)
                is_published = True
            return _obtained(minted)
        finally:
            if not is_published:
                await self._cache.release(lease)

    async def _find_rotated(self, address: Address, epochs: tuple[bytes, ...]) -> Obtained | None:
        """Return what lies where the keys before the last rotation put it."""
        older = self._vault.names(address.key)[1:]
        values = await self._cache.find(older) if older else None
        for value in values or ():
            # A drop reaches these by the names of their own time.
            credential = None if value is None else self._open(address, value, epochs)
            if credential is not None:
                return Obtained(credential, Source.REDIS)
        return None

    async def _publish(self, address: Address, lease: Lease, packed: Packed, life: timedelta) -> None:
        sealed = self._vault.seal(address.key, pack(packed))
        if await self._cache.publish(lease, sealed, life):
            for mark in address.marks:
                await self._cache.enlist(self._vault.name(index_key(mark)), lease.name, life)

    def _open(self, address: Address, sealed: bytes, epochs: tuple[bytes, ...]) -> Credential | None:
        content = self._vault.open(address.key, sealed)
        packed = None if content is None else unpack(content)
        if packed is None:
            self._metrics.count_redis_error(RedisError.UNREADABLE)
            return None
        if packed.epochs != epochs or not address.accepts(packed.credential):
            return None
        return packed.credential

    def _epoch_names(self, address: Address) -> list[str]:
        return [self._vault.name(epoch_key(mark)) for mark in address.marks]

    @asynccontextmanager
    async def _renewing(self, lease: Lease) -> AsyncIterator[None]:
        """Hold the lease for as long as the block takes: slow is not dead."""
        task = asyncio.create_task(self._renew(lease))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _renew(self, lease: Lease) -> None:
        while True:
            await self._sleep(self._lease_time.total_seconds() / 3)
            await self._cache.renew(lease, self._lease_time)


def _obtained(minted: Minted) -> Obtained:
    return Obtained(minted.credential, Source.MINTED, minted.life is not None)


def _epochs(values: Sequence[bytes | None]) -> tuple[bytes, ...]:
    return tuple(value or b"" for value in values)
