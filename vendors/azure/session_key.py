"""Delegation keys that URLs are signed with: one for a window, whichever replica asked for it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from gateway.domain.credential import AzureDelegationKey, Credential
from gateway.domain.window import Window
from gateway.errors import Internal
from gateway.ports import Sessions
from vendors.azure.delegation_key import DelegationKey, read_key

# So that what is signed ends by its own end, and not a moment before it by the key's.
_MARGIN: Final = timedelta(minutes=1)

AskKey = Callable[[datetime, datetime], Awaitable[DelegationKey]]


class SessionKeys:
    def __init__(self, sessions: Sessions, ask: AskKey) -> None:
        self._sessions = sessions
        self._ask = ask

    async def get(self, window: Window) -> DelegationKey:
        """Return the key of a window, with which all that is signed in it is signed."""
        return unpack(await self._sessions.obtain(window, partial(self._mint, window)))

    async def _mint(self, window: Window) -> Credential:
        # By the window's times, not by now: whoever asks for it, and when, asks for the same key.
        return pack(await self._ask(window.start, window.expires_at + _MARGIN))


def pack(key: DelegationKey) -> Credential:
    """Return a key as replicas pass it on to each other."""
    written = AzureDelegationKey(
        oid=key.oid,
        tid=key.tid,
        start=key.start,
        expiry=key.expiry,
        service=key.service,
        version=key.version,
        value=base64.b64encode(key.secret).decode(),
    )
    name = f"key-{hashlib.sha256(key.secret).hexdigest()[:32]}"
    return Credential(id=name, secret=written, expires_at=key.expires_at)


def unpack(credential: Credential) -> DelegationKey:
    """Return a key that was packed."""
    if not isinstance(credential.secret, AzureDelegationKey):
        raise Internal("internal error")
    return read_key(credential.secret)
