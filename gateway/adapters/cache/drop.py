"""Drops what Redis holds for a recipient or of a storage."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Final

from gateway.adapters.cache.key import encode, epoch_key, index_key
from gateway.adapters.cache.shared import SharedCache
from gateway.adapters.cache.vault import Vault

_EPOCH_BYTES: Final = 16
# Longer than any credential lives: no value from before an epoch outlives it.
_EPOCH_LIFE: Final = timedelta(days=30)


class Drops:
    """Removal wins: what is being minted while it happens is not found by anybody afterwards."""

    def __init__(self, cache: SharedCache, vault: Vault) -> None:
        self._cache = cache
        self._vault = vault

    async def drop_recipient(self, name: str) -> int | None:
        """Return how many values were removed, or None when Redis does not answer."""
        return await self._drop(encode("recipient", name))

    async def drop_storage(self, name: str) -> int | None:
        return await self._drop(encode("storage", name))

    async def _drop(self, mark: bytes) -> int | None:
        # First the epoch: what is published from now on by one who began before is of the one before. Never
        # a counter, which a failover may set back to a number that has been in use.
        epoch = secrets.token_bytes(_EPOCH_BYTES)
        for name in self._vault.names(epoch_key(mark)):
            if not await self._cache.put(name, epoch, _EPOCH_LIFE):
                return None
        removed = 0
        for name in self._vault.names(index_key(mark)):
            count = await self._cache.drop(name)
            if count is None:
                return None
            removed += count
        return removed
