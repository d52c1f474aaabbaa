"""Signs URLs of blobs, each by a SAS that reads this one and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Signatures, SigningCost, StorageSettings
from vendors.azure.account import Account
from vendors.azure.account_key import AccountKey
from vendors.azure.blob_sas import BlobSas, SigningKey
from vendors.azure.config import AzureOptions
from vendors.azure.sas import SasResource

# About two milliseconds of signing.
_MOST_IN_PLACE: Final = 1200

GetKey = Callable[[Window], Awaitable[SigningKey]]


class AzureSigner:
    cost = SigningCost.HASH

    def __init__(
        self,
        settings: StorageSettings,
        options: AzureOptions,
        account: Account,
        get_key: GetKey,
        *,
        has_sessions: bool,
    ) -> None:
        self.has_sessions = has_sessions
        self._prefix = settings.prefix
        self._skew = options.clock_skew
        self._account = account
        self._get_key = get_key

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        if not self._prefix.covers(table):
            raise Unsupported("the location does not lie in this storage")
        key = await self._get_key(window)
        starts_at, expires_at = self._times(window, key)
        if expires_at <= starts_at:
            raise Unavailable("the storage's key has expired; try again later")
        account = self._account
        sas = BlobSas.of(
            SasResource(account=account.name, container=account.container, path=table.path),
            key,
            starts_at=starts_at,
            expires_at=expires_at,
            protocol=account.protocol,
        )
        if len(paths) > _MOST_IN_PLACE:
            signatures = await asyncio.to_thread(sas.sign, paths.joined)
        else:
            signatures = sas.sign(paths.joined)
        return Signatures(
            origin=f"{account.url(table.path)}/",
            query=sas.query,
            signatures=signatures,
            expires_at=expires_at,
        )

    def _times(self, window: Window, key: SigningKey) -> tuple[datetime, datetime]:
        # Azure compares both with its own clock, which may be behind ours.
        starts_at, expires_at = window.start - self._skew, window.expires_at
        if not isinstance(key, AccountKey):
            starts_at, expires_at = max(starts_at, key.starts_at), min(expires_at, key.expires_at)
        # As it is written, which is to the second: it is never told to live longer than Azure lets it.
        return starts_at, expires_at.astimezone(UTC).replace(microsecond=0)
