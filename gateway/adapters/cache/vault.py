"""Seals what is stored in Redis, and names it so that the name tells nothing."""

from __future__ import annotations

import base64
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.adapters.cache.key import FORMAT
from gateway.domain.key import Key, Keys

_NONCE_BYTES: Final = 12
_NAME_BYTES: Final = 18
_VERSION: Final = bytes([FORMAT])


class Vault:
    """The sealing keys of a process at work. A value opens under its own cache key only."""

    def __init__(self, keys: Keys) -> None:
        self._current = _Half(keys.current)
        self._halves = {self._current.id: self._current}
        if keys.previous is not None:
            previous = _Half(keys.previous)
            self._halves.setdefault(previous.id, previous)

    def name(self, key: bytes) -> str:
        """Return where the value of a cache key lies."""
        return self._current.name(key)

    def names(self, key: bytes) -> tuple[str, ...]:
        """Return that, and where it lay before the keys were rotated."""
        return tuple(half.name(key) for half in self._halves.values())

    def seal(self, key: bytes, value: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        head = self._current.head
        return head + nonce + self._current.cipher.encrypt(nonce, value, head + key)

    def open(self, key: bytes, sealed: bytes) -> bytes | None:
        """Return the value that was sealed for this key, or None for whatever else it is."""
        if sealed[:1] != _VERSION:
            return None
        half = self._halves.get(sealed[2 : 2 + sealed[1]] if len(sealed) > 1 else b"")
        if half is None:
            return None
        start = len(half.head)
        nonce, body = sealed[start : start + _NONCE_BYTES], sealed[start + _NONCE_BYTES :]
        try:
            return half.cipher.decrypt(nonce, body, half.head + key)
        except (InvalidTag, ValueError):
            return None


class _Half:
    """One key, as a key to seal with and another to name with."""

    def __init__(self, key: Key) -> None:
        self.id = key.id.encode()
        self.head = _VERSION + bytes([len(self.id)]) + self.id
        self.cipher = AESGCM(key.mac(b"cache: seal"))
        self._naming = Key(id="", secret=key.mac(b"cache: name"))

    def name(self, key: bytes) -> str:
        return base64.urlsafe_b64encode(self._naming.mac(key)[:_NAME_BYTES]).decode()
