"""One mint for each key across all replicas, its result sealed where all of them find it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, Generic, TypeVar

from gateway.adapters.cache.chance import Chance, chance
from gateway.adapters.cache.codec import Packed
from gateway.adapters.cache.flight import Flights
from gateway.adapters.cache.sealed import Address, Epochs, Sealed
from gateway.adapters.cache.shared import Claim, ClaimState, Lease
from gateway.adapters.credential_metrics import Source

_TOKEN_BYTES: Final = 16
_FIRST_POLL, _LONGEST_POLL = 0.02, 0.25
# Who has waited for so many leases goes ahead alone: a live leader would have been done.
_LEASES_WAITED: Final = 3
# So many useless values in a row are somebody's doing.
_MOST_USELESS: Final = 3
# With more under way, the store is too slow to be of use.
_MOST_PUTS: Final = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Minted(Generic[T]):
    value: T
    # How long others may find it; None: it is not for others.
    life: timedelta | None


@dataclass(frozen=True, slots=True)
class Obtained(Generic[T]):
    value: T
    source: Source
    # Whether it may be kept.
    is_lasting: bool = True


class Replicas:
    """Finds what another replica has made, waits for what one is making, or lets the caller make it."""

    def __init__(
        self,
        sealed: Sealed,
        *,
        lease_time: timedelta,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Chance = chance,
    ) -> None:
        self.sealed = sealed
        self._cache = sealed.cache
        self._lease_time = lease_time
        self._sleep = sleep
        self._chance = chance
        self._puts: Flights[None] = Flights()

    async def close(self) -> None:
        """Give up what is being stored."""
        await self._puts.close()

    async def obtain(self, address: Address[T], mint: Callable[[], Awaitable[Minted[T]]]) -> Obtained[T]:
        lease = Lease(name=self.sealed.name(address), token=secrets.token_bytes(_TOKEN_BYTES))
        poll, waited, useless = _FIRST_POLL, 0.0, 0
        epochs: Epochs = ()
        longest = _LEASES_WAITED * self._lease_time.total_seconds()
        while waited < longest and useless < _MOST_USELESS:
            claim, epochs = await self._look(address, lease)
            if claim.state is ClaimState.FOUND:
                value = await self.sealed.open_first(address, [claim.value], epochs)
                if value is not None:
                    return Obtained(value, Source.REDIS)
                lease, useless = replace(lease, seen=claim.value), useless + 1
            elif claim.state is ClaimState.TAKEN:
                if not waited:
                    address.count_wait()
                pause = poll * (0.5 + self._chance() / 2)
                await self._sleep(pause)
                waited, poll = waited + pause, min(poll * 2, _LONGEST_POLL)
            elif claim.state is ClaimState.MINE:
                return await self._lead(address, lease, epochs, mint)
            else:
                return obtained(await mint())
        minted = await mint()
        if minted.life is not None:
            # Stored only where there is still none: the lease is another's.
            await self._publish(address, lease, Packed(minted.value, epochs), minted.life)
        return obtained(minted)

    async def share(self, address: Address[T], mint: Callable[[], Awaitable[Minted[T]]]) -> Obtained[T]:
        """Find what another replica has made, or make it; without a lease, as all make the same bytes."""
        looked = await self.sealed.look(address)
        if looked.value is not None:
            return Obtained(looked.value, Source.REDIS)
        minted = await mint()
        is_free = len(self._puts) < _MOST_PUTS and self._puts.find(address.key) is None
        if looked.epochs is not None and minted.life is not None and is_free:
            put = partial(self.sealed.put, address, Packed(minted.value, looked.epochs), minted.life)
            # Nobody waits for it: who asked has the answer already.
            self._puts.start(address.key, put)
        return obtained(minted)

    async def _look(self, address: Address[T], lease: Lease) -> tuple[Claim, Epochs]:
        # The epochs are known before anything is minted: what was asked for before a drop says so.
        claim, epochs = await asyncio.gather(
            self._cache.claim(lease, self._lease_time), self.sealed.find_epochs(address)
        )
        if epochs is None:
            if claim.state is ClaimState.MINE:
                await self._cache.release(lease)
            return Claim(ClaimState.OUT), ()
        return claim, epochs

    async def _lead(
        self,
        address: Address[T],
        lease: Lease,
        epochs: Epochs,
        mint: Callable[[], Awaitable[Minted[T]]],
    ) -> Obtained[T]:
        is_published = False
        try:
            found = await self.sealed.find_rotated(address, epochs)
            if found is not None:
                return Obtained(found, Source.REDIS)
            async with self._renewing(lease):
                minted = await mint()
            if minted.life is not None:
                await self._publish(address, lease, Packed(minted.value, epochs), minted.life)
                is_published = True
            return obtained(minted)
        finally:
            if not is_published:
                await self._cache.release(lease)

    async def _publish(self, address: Address[T], lease: Lease, packed: Packed[T], life: timedelta) -> None:
        if await self._cache.publish(lease, await self.sealed.seal(address, packed), life):
            await self.sealed.enlist(address, life)

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


def obtained(minted: Minted[T]) -> Obtained[T]:
    """Return what nobody else was asked for."""
    return Obtained(minted.value, Source.MINTED, minted.life is not None)
