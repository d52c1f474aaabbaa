"""Asks each storage what its credentials name, and to refuse those that are out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway.adapters.storage_check import FindVendor
from gateway.adapters.vendors import find_vendor
from gateway.commands.dir_access import open_storage, reason
from gateway.config.schema import Config, StorageConfig
from gateway.ports import Cut

_PATIENCE: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the credentials of a storage that are out."""

    storage: str
    vendor: str
    done: bool
    words: str
    # Until then, what is out may live if nothing cuts it off.
    lives_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Storages:
    config: Config
    find: FindVendor = find_vendor

    async def find_shared(self, entries: Sequence[StorageConfig]) -> list[StorageConfig]:
        """Return the storages whose credentials name nobody, so that everybody's are one."""
        return [entry for entry in entries if not await self._names_recipients(entry)]

    async def cut_off(
        self, entries: Sequence[StorageConfig], recipient: str, issued_before: datetime
    ) -> list[Outcome]:
        return [await self._cut_off(entry, recipient, issued_before) for entry in entries]

    async def _names_recipients(self, entry: StorageConfig) -> bool:
        try:
            async with open_storage(self.config, entry, self.find) as storage:
                return storage.issuer is None or storage.issuer.names_recipients
        except Exception:  # noqa: BLE001 -- of a storage that does not open nothing is known: take the safe side
            return False

    async def _cut_off(self, entry: StorageConfig, recipient: str, issued_before: datetime) -> Outcome:
        try:
            async with (
                asyncio.timeout(_PATIENCE.total_seconds()),
                open_storage(self.config, entry, self.find) as storage,
            ):
                if storage.issuer is None:
                    cut = Cut(done=True, words="issues no credentials")
                elif storage.cutter is None:
                    cut = Cut(done=False, words="nothing cuts these off but time")
                else:
                    cut = await storage.cutter.cut_off(recipient, issued_before)
        except Exception as exc:  # noqa: BLE001 -- one storage's failure must not save the credentials of the next
            cut = Cut(done=False, words=f"could not be asked: {_why(exc)}; put that right and run this again")
        life = entry.credential_life or self.config.credentials.life
        return Outcome(
            storage=entry.name,
            vendor=entry.vendor,
            done=cut.done,
            words=cut.words,
            lives_until=issued_before + life,
        )


def _why(exc: Exception) -> str:
    return "no answer in time" if isinstance(exc, TimeoutError) else reason(exc)
