"""Asks each storage what its credentials name, and to refuse those that are out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from gateway.adapters.storage_check import FindVendor
from gateway.adapters.vendors import find_vendor
from gateway.commands.dir_access import open_storage, reason
from gateway.config.schema import Config, StorageConfig
from gateway.ports import Cut

_PATIENCE: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What must be known of a storage before anything is cut off."""

    entry: StorageConfig
    # False where everybody's credentials are one.
    names_recipients: bool
    # What a cut ends for everybody, empty for nothing; None where the storage does not open.
    everybody: str | None
    consequence: str = ""


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

    async def survey(self, entries: Sequence[StorageConfig]) -> list[Traits]:
        return [await self._traits(entry) for entry in entries]

    async def cut_off(
        self, asked: Sequence[Traits], recipient: str, issued_before: datetime, last_issue: datetime
    ) -> list[Outcome]:
        """Ask each to refuse what was issued before a moment; the last issue may lie before that."""
        outcomes = []
        for entry in (one.entry for one in asked):
            cut = await self._cut_off(entry, recipient, issued_before)
            life = entry.credential_life or self.config.credentials.life
            outcomes.append(
                Outcome(
                    storage=entry.name,
                    vendor=entry.vendor,
                    done=cut.done,
                    words=cut.words,
                    lives_until=last_issue + max(life, cut.life or life),
                )
            )
        return _ended_together(asked, outcomes)

    async def _traits(self, entry: StorageConfig) -> Traits:
        try:
            async with open_storage(self.config, entry, self.find) as storage:
                cutter = storage.cutter if storage.issuer else None
                return Traits(
                    entry=entry,
                    names_recipients=storage.issuer is None or storage.issuer.names_recipients,
                    everybody=cutter.everybody if cutter else "",
                    consequence=cutter.consequence if cutter else "",
                )
        except Exception:  # noqa: BLE001 -- of a storage that does not open nothing is known: take the safe side
            return Traits(entry=entry, names_recipients=False, everybody=None)

    async def _cut_off(self, entry: StorageConfig, recipient: str, issued_before: datetime) -> Cut:
        try:
            async with (
                asyncio.timeout(_PATIENCE.total_seconds()),
                open_storage(self.config, entry, self.find) as storage,
            ):
                if storage.issuer is None:
                    return Cut(done=True, words="issues no credentials")
                if storage.cutter is None:
                    return Cut(done=False, words="nothing cuts these off but time")
                return await storage.cutter.cut_off(recipient, issued_before)
        except Exception as exc:  # noqa: BLE001 -- one storage's failure must not save the credentials of the next
            return Cut(
                done=False, words=f"could not be asked: {_why(exc)}; put that right and run this again"
            )


def hit_with(traits: Sequence[Traits], done: Sequence[str]) -> set[str]:
    """Return the storages whose credentials ended together with those of the ones that were cut off."""
    ended = [one for one in traits if one.entry.name in done and one.everybody]
    names, vendors = {one.everybody for one in ended}, {one.entry.vendor for one in ended}
    return {
        one.entry.name
        for one in traits
        # Of one that does not open it is not known: to issue anew there is no harm.
        if one.everybody in names or (one.everybody is None and one.entry.vendor in vendors)
    }


def _ended_together(asked: Sequence[Traits], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes, where what one storage could not end may have ended with that of another."""
    by_name = {one.everybody: out.storage for one, out in zip(asked, outcomes, strict=True) if out.done}
    return [
        replace(out, done=True, words=f"ended together with those of {by_name[one.everybody]}")
        if one.everybody and not out.done and one.everybody in by_name
        else out
        for one, out in zip(asked, outcomes, strict=True)
    ]


def _why(exc: Exception) -> str:
    return "no answer in time" if isinstance(exc, TimeoutError) else reason(exc)
