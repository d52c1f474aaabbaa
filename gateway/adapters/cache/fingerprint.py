"""What of a storage's settings its credentials depend on, as a hash."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from gateway.adapters.cache.key import FORMAT, encode
from gateway.adapters.storage_plan import PlannedStorage

# How soon a secret that was replaced on disk is noticed.
_LOOKED_EVERY: Final = 60.0
_LARGEST: Final = 1024 * 1024
_UNREADABLE: Final = b"\0unreadable"


class Fingerprint:
    """Changes with the settings and the files that they name. It is in keys only: it is shown nowhere."""

    def __init__(self, planned: PlannedStorage, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = _settings(planned)
        self._files = tuple(sorted(set(_files(planned.options))))
        self._monotonic = monotonic
        self._due_at = 0.0
        # None until the files have been read for the first time.
        self.value: bytes | None = None if self._files else _digest(self._settings)

    async def settled(self) -> bytes:
        """Return the hash; from time to time, look first whether a file has changed."""
        now = self._monotonic()
        if self.value is None or (self._files and now >= self._due_at):
            self._due_at = now + _LOOKED_EVERY
            contents = await asyncio.to_thread(lambda: [_content(file) for file in self._files])
            self.value = _digest(self._settings, *contents)
        return self.value


def _settings(planned: PlannedStorage) -> bytes:
    options = json.dumps(planned.options, sort_keys=True, default=str)
    revoked = planned.revoked_at.isoformat() if planned.revoked_at else ""
    life = str(planned.credential_life.total_seconds())
    return encode(FORMAT, planned.name, planned.vendor, *planned.prefix.identity, options, life, revoked)


def _files(options: object, name: str = "") -> Iterator[str]:
    """Return the files that options name as ``file`` or as ``keyFile`` and the like."""
    if isinstance(options, Mapping):
        for key, value in options.items():
            yield from _files(value, str(key))
    elif isinstance(options, list | tuple):
        for item in options:
            yield from _files(item, name)
    # Not the tokens that a platform gives to each pod: they are no setting, and replicas would share nothing.
    elif isinstance(options, str) and (name == "file" or name.endswith("File")) and name != "tokenFile":
        yield options


def _content(file: str) -> bytes:
    try:
        with Path(file).open("rb") as stream:
            return hashlib.sha256(stream.read(_LARGEST)).digest()
    except (OSError, ValueError):
        return _UNREADABLE


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(encode(*parts)).digest()
