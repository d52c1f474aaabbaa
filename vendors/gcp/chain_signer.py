"""Signs URLs as whoever the surroundings make the gateway, where the settings name nobody."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from google.auth.exceptions import GoogleAuthError
from google.oauth2 import service_account

from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Signatures, Signer, SigningCost
from vendors.gcp.config import Account, IdentityOptions
from vendors.gcp.identity import Transport, credentials_of
from vendors.gcp.service_key import ServiceKey

# How soon a key that was replaced is noticed.
_LOOKED_EVERY: Final = 300.0

log = logging.getLogger(__name__)


class ChainSigner:
    """Looks when it is asked, and stays with what it has found for some minutes."""

    # It may be an account that only Google can sign as.
    cost = SigningCost.CALL
    has_sessions = False

    def __init__(
        self,
        *,
        find: Callable[[], ServiceKey | Account],
        make: Callable[[ServiceKey | Account], Signer],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._make = make
        self._monotonic = monotonic
        self._looking = asyncio.Lock()
        self._found: tuple[ServiceKey | Account, Signer] | None = None
        self._due_at = 0.0

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        async with self._looking:
            signer = await self._current()
        return await signer.sign(table, paths, window)

    async def _current(self) -> Signer:
        known, now = self._found, self._monotonic()
        if known is not None and now < self._due_at:
            return known[1]
        found = await asyncio.to_thread(self._find)
        # The signer of the same account goes on: it knows what Google has asked of it.
        if known is None or known[0] != found:
            known = self._found = (found, self._make(found))
        self._due_at = now + _LOOKED_EVERY
        return known[1]


def find_signer(identity: IdentityOptions, transport: Transport) -> ServiceKey | Account:
    """Return the key that the surroundings hold, or else the account that they make the gateway. May ask."""
    try:
        credentials = credentials_of(identity, transport)
        if isinstance(credentials, service_account.Credentials):
            return ServiceKey(email=str(credentials.service_account_email), sign=credentials.sign_bytes)
        # Before that, a machine's credentials do not know whose they are.
        credentials.refresh(transport)
    except (GoogleAuthError, OSError, ValueError) as exc:
        # Its words may repeat a token.
        log.warning("nobody was found to sign URLs as: %s", type(exc).__name__)
        raise Unavailable("the storage's own identity cannot sign at the moment") from None
    email = getattr(credentials, "service_account_email", None)
    if not isinstance(email, str) or "@" not in email:
        raise Unsupported("the storage's own identity is not a service account's, and so signs no URLs")
    return Account(email=email)
