"""The key of a storage account itself, which does not expire and may be replaced while we run."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import datetime

from gateway.errors import Unavailable
from gateway.ports import Clock
from vendors.azure.errors import key_unavailable
from vendors.options import SecretOptions, why_unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountKey:
    # In base64, as Azure shows it.
    text: str = field(repr=False)
    secret: bytes = field(repr=False)
    read_at: datetime

    @property
    def fields(self) -> dict[str, str]:
        """Return what of the key stands in a SAS: nothing, as Azure knows its own."""
        return {}


class AccountKeys:
    """The key is read each time, as its file may have been replaced."""

    def __init__(self, storage: str, secret: SecretOptions, clock: Clock) -> None:
        self._storage = storage
        self._secret = secret
        self._clock = clock

    async def get(self) -> AccountKey:
        """Return the key; raise ``Unavailable`` when there is none to read."""
        if self._secret.file is not None:
            return await asyncio.to_thread(self._read)
        return self._read()

    def _read(self) -> AccountKey:
        read_at = self._clock()
        try:
            text = self._secret.read().strip()
        except (OSError, UnicodeError) as exc:
            # Not from it: what could not be decoded would be in its text.
            raise self._unavailable(exc) from None
        secret = decode_key(text)
        if secret is None:
            raise key_unavailable(self._storage, "it is not in base64")
        return AccountKey(text=text, secret=secret, read_at=read_at)

    def _unavailable(self, exc: OSError | UnicodeError) -> Unavailable:
        unreadable = why_unreadable(exc) if isinstance(exc, OSError) else ""
        return key_unavailable(self._storage, unreadable or type(exc).__name__)


def decode_key(text: str) -> bytes | None:
    """Return the bytes of a key; None for what is not one."""
    try:
        return base64.b64decode(text.strip(), validate=True) or None
    except ValueError:
        return None
