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
# What a profile that names no file comes from.
_HOME_FILES: Final = ("~/.aws/credentials", "~/.aws/config")
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

    @property
    def is_due(self) -> bool:
        """Tell whether to look if a file has changed before the value is believed."""
        return bool(self._files) and self._monotonic() >= self._due_at

    async def settled(self) -> bytes:
        """Return the hash; from time to time, look first whether a file has changed."""
        if self.value is not None and not self.is_due:
            return self.value
        due_at = self._monotonic()
        # At once: while one looks, the others go on with what is known.
        self._due_at = due_at + _LOOKED_EVERY
        try:
            contents = await asyncio.to_thread(lambda: [_content(file) for file in self._files])
        except asyncio.CancelledError:
            self._due_at = due_at
            raise
        self.value = _digest(self._settings, *contents)
        return self.value


def _settings(planned: PlannedStorage) -> bytes:
    options = json.dumps(planned.options, sort_keys=True, default=str)
    revoked = planned.revoked_at.isoformat() if planned.revoked_at else ""
    life = str(planned.credential_life.total_seconds())
    return encode(FORMAT, planned.name, planned.vendor, *planned.prefix.identity, options, life, revoked)


def _files(options: object, name: str = "") -> Iterator[str]:
    """Return the files that options name as ``file`` or as ``keyFile`` and the like, or mean by a profile."""
    if isinstance(options, Mapping):
        if options.get("kind") == "profile" and not options.get("file"):
            yield from _HOME_FILES
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
        with Path(file).expanduser().open("rb") as stream:
            return hashlib.sha256(stream.read(_LARGEST)).digest()
    # The last where there is no home.
    except (OSError, ValueError, RuntimeError):
        return _UNREADABLE


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(encode(*parts)).digest()
