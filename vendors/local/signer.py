"""Signs URLs of local files, which lead back to the gateway."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

from gateway.domain import local_url
from gateway.domain.file_path import Paths, encode_path
from gateway.domain.key import Keys
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.ports import Signatures, SigningCost, StorageSettings

# About two milliseconds of signing.
_MOST_IN_PLACE: Final = 1500


class LocalSigner:
    """Needs no I/O, so that nothing but the window decides when a signature expires."""

    cost = SigningCost.HASH
    has_sessions = False

    def __init__(self, settings: StorageSettings, keys: Keys) -> None:
        self._storage = settings.name
        self._prefix = settings.prefix
        self._base = f"{settings.public_url.rstrip('/')}/{local_url.PATH_PREFIX}/{settings.name}/"
        self._key = local_url.root_key(keys.current, f"/{settings.prefix.path}")

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        if len(paths) > _MOST_IN_PLACE:
            return await asyncio.to_thread(self._sign, table, paths, window)
        return self._sign(table, paths, window)

    def _sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        below = self._prefix.below(table)
        directory = f"{encode_path(below)}/" if below else ""
        depth = directory.count("/")
        key, expires_at = self._key, int(window.expires_at.timestamp())
        return Signatures(
            origin=self._base + directory,
            query=local_url.shared_query(key, depth, expires_at),
            signatures="\n".join(
                local_url.sign(
                    key, self._storage, directory, paths.split(), depth=depth, expires_at=expires_at
                )
            ).encode(),
            expires_at=datetime.fromtimestamp(expires_at, tz=UTC),
        )
