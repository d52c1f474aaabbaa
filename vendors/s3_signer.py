"""Signs URLs of a bucket's objects for whoever speaks the S3 protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Signatures, SigningCost
from vendors.s3_address import Place
from vendors.sigv4 import LONGEST, Presigning, shared_query, sign_urls

# About three milliseconds of signing.
_MOST_IN_PLACE: Final = 1500


class S3Signer:
    """Takes the keys of a window from ``obtain``, and lets no URL outlive them."""

    cost = SigningCost.HASH

    def __init__(
        self,
        *,
        prefix: Location,
        find_place: Callable[[], Awaitable[Place]],
        obtain: Callable[[Window], Awaitable[Credential]],
        has_sessions: bool,
    ) -> None:
        self._prefix = prefix
        self._find_place = find_place
        self._obtain = obtain
        self.has_sessions = has_sessions
        self._place: Place | None = None

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        # Refuses what is not this storage's: the bucket in the URL would be another than the table's.
        self._prefix.below(table)
        if window.expires_at - window.start > LONGEST:
            raise Unsupported("URLs of this storage live a week at most: set a shorter life of URLs")
        if self._place is None:
            self._place = await self._find_place()
        terms = _terms(self._place, await self._obtain(window), window)
        directory = self._place.directory(table.path)
        if len(paths) > _MOST_IN_PLACE:
            signatures = await asyncio.to_thread(sign_urls, terms, directory, paths.split())
        else:
            signatures = sign_urls(terms, directory, paths.split())
        return Signatures(
            origin=f"{self._place.url}{directory}",
            query=shared_query(terms),
            signatures=signatures,
            expires_at=terms.signed_at + terms.life,
        )


def _terms(place: Place, credential: Credential, window: Window) -> Presigning:
    if not isinstance(credential.secret, AwsTempCredentials):
        raise Unsupported("this storage takes keys of its own kind only")
    signed_at = _whole_second(window.start)
    # The store refuses what was signed by a session that is over, whatever the URL says.
    expires_at = _whole_second(min(window.expires_at, credential.expires_at))
    if expires_at <= signed_at:
        raise Unavailable("the storage's token service gave a session that is over; try again later")
    return Presigning(
        host=place.host,
        region=place.region,
        keys=credential.secret,
        signed_at=signed_at,
        life=expires_at - signed_at,
    )


def _whole_second(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)
