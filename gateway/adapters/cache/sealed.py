"""Values where all replicas find them: sealed, and believed in their own epoch only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from gateway.adapters.cache.aside import aside
from gateway.adapters.cache.codec import Codec, Packed
from gateway.adapters.cache.key import epoch_key, index_key
from gateway.adapters.cache.shared import SharedCache
from gateway.adapters.cache.vault import Vault
from gateway.adapters.credential_metrics import CredentialMetrics, RedisError

T = TypeVar("T")
# Of each of an address's marks, in their order.
Epochs = tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address(Generic[T]):
    """Where a value belongs."""

    # With its window.
    key: bytes
    # What it can be dropped by.
    marks: tuple[bytes, ...]
    codec: Codec[T]
    # Whether a value that is found may be handed out.
    accepts: Callable[[T], bool]
    # Counts that another replica's mint is waited for.
    count_wait: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Looked(Generic[T]):
    """What was found, and what one's own must be stored with; neither where the store does not answer."""

    value: T | None = None
    epochs: Epochs | None = None


class Sealed:
    """Whatever is not a value for its very key, of its epoch, is a miss."""

    def __init__(self, cache: SharedCache, vault: Vault, metrics: CredentialMetrics) -> None:
        self.cache = cache
        self._vault = vault
        self._metrics = metrics

    async def look(self, address: Address[T]) -> Looked[T]:
        """Return what another replica has made, without waiting or making it, in one round trip."""
        names = self._vault.names(address.key)
        values = await self.cache.find([*names, *self._epoch_names(address)])
        if values is None:
            return Looked()
        epochs = _epochs(values[len(names) :])
        value = await self.open_first(address, values[: len(names)], epochs)
        return Looked(value, epochs)

    async def find_epochs(self, address: Address[T]) -> Epochs | None:
        values = await self.cache.find(self._epoch_names(address))
        return None if values is None else _epochs(values)

    async def find_rotated(self, address: Address[T], epochs: Epochs) -> T | None:
        """Return what lies where the keys before the last rotation put it."""
        older = self._vault.names(address.key)[1:]
        values = await self.cache.find(older) if older else None
        # A drop reaches these by the names of their own time.
        return await self.open_first(address, values or (), epochs)

    async def open_first(
        self, address: Address[T], values: Sequence[bytes | None], epochs: Epochs
    ) -> T | None:
        """Return the first that may be handed out."""
        for sealed in values:
            if sealed is None:
                continue
            value = await self._open(address, sealed, epochs)
            if value is not None:
                return value
        return None

    async def put(self, address: Address[T], packed: Packed[T], life: timedelta) -> None:
        """Store a value that everybody would make alike: it may take the place of another's."""
        if await self.cache.put(self.name(address), await self.seal(address, packed), life):
            await self.enlist(address, life)

    def name(self, address: Address[T]) -> str:
        return self._vault.name(address.key)

    async def seal(self, address: Address[T], packed: Packed[T]) -> bytes:
        return await aside(
            address.codec.size(packed.value),
            lambda: self._vault.seal(address.key, address.codec.pack(packed)),
        )

    async def enlist(self, address: Address[T], life: timedelta) -> None:
        """Put a value that was stored on the lists that it can be dropped by."""
        for mark in address.marks:
            await self.cache.enlist(self._vault.name(index_key(mark)), self.name(address), life)

    async def _open(self, address: Address[T], sealed: bytes, epochs: Epochs) -> T | None:
        packed = await aside(len(sealed), lambda: self._unsealed(address, sealed))
        if packed is None:
            self._metrics.count_redis_error(RedisError.UNREADABLE)
            return None
        return packed.value if packed.epochs == epochs and address.accepts(packed.value) else None

    def _unsealed(self, address: Address[T], sealed: bytes) -> Packed[T] | None:
        content = self._vault.open(address.key, sealed)
        return None if content is None else address.codec.unpack(content)

    def _epoch_names(self, address: Address[T]) -> list[str]:
        return [self._vault.name(epoch_key(mark)) for mark in address.marks]


def _epochs(values: Sequence[bytes | None]) -> Epochs:
    return tuple(value or b"" for value in values)
