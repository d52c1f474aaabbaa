"""Signs URLs with the private key of a service account."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.ports import Signatures, SigningCost
from vendors.gcp.service_key import ServiceKey
from vendors.gcp.v4 import Algorithm, Form, Place, new_form

# About twenty milliseconds of a core's time, so that streams take turns.
_CHUNK: Final = 64


class RsaSigner:
    """Signs on all cores, for OpenSSL works without Python's lock, and never on the event loop."""

    cost = SigningCost.PRIVATE_KEY
    has_sessions = False

    def __init__(self, *, read_key: Callable[[], ServiceKey], place: Place) -> None:
        self._read_key = read_key
        self._place = place
        # More at once would take the threads from those who read files.
        self._cores = asyncio.Semaphore(os.cpu_count() or 1)

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        key = await asyncio.to_thread(self._read_key)
        form = new_form(self._place, table, window, algorithm=Algorithm.RSA, signer=key.email)
        split = paths.split()
        chunks = [split[start : start + _CHUNK] for start in range(0, len(split), _CHUNK)]
        signed = await asyncio.gather(*(self._sign(key, form, chunk) for chunk in chunks))
        return form.filled(signature for part in signed for signature in part)

    async def _sign(self, key: ServiceKey, form: Form, paths: list[bytes]) -> list[bytes]:
        async with self._cores:
            return await asyncio.to_thread(_signatures, key, form, paths)


def _signatures(key: ServiceKey, form: Form, paths: list[bytes]) -> list[bytes]:
    return [key.sign(message) for message in form.messages(paths)]
