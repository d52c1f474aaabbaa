"""Signs URLs with an HMAC key of Google Cloud Storage."""

from __future__ import annotations

import asyncio
import hmac
import logging
from typing import Final

from gateway.domain.file_path import Paths
from gateway.domain.key import Key
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.errors import Unavailable
from gateway.ports import Signatures, SigningCost
from vendors.gcp.config import HmacOptions
from vendors.gcp.v4 import Algorithm, Form, Place, new_form
from vendors.options import why_unreadable

# About two milliseconds of signing.
_MOST_IN_PLACE: Final = 1000

log = logging.getLogger(__name__)


class HmacSigner:
    """The secret is read each time, as its file may have been replaced."""

    cost = SigningCost.HASH
    has_sessions = False

    def __init__(self, options: HmacOptions, place: Place) -> None:
        self._options = options
        self._place = place

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        if self._options.secret.file is not None or len(paths) > _MOST_IN_PLACE:
            return await asyncio.to_thread(self._sign, table, paths, window)
        return self._sign(table, paths, window)

    def _sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        signer = self._options.access_id
        form = new_form(self._place, table, window, algorithm=Algorithm.HMAC, signer=signer)
        key = Key(id=signer, secret=_days_secret(self._secret(), form))
        return form.filled(key.macs(form.head, form.hashes(paths.split())))

    def _secret(self) -> str:
        try:
            return self._options.secret.read()
        except (OSError, ValueError) as exc:
            reason = why_unreadable(exc) if isinstance(exc, OSError) else "it is not text"
            log.warning("a storage has no HMAC key to sign with: %s", reason)
            raise Unavailable("the storage's own identity cannot sign at the moment") from None


def _days_secret(secret: str, form: Form) -> bytes:
    derived = f"GOOG4{secret}".encode()
    for part in form.scope:
        derived = hmac.digest(derived, part.encode(), "sha256")
    return derived
