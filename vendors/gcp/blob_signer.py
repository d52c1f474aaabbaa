"""Signs URLs without a key: Google signs them as a service account."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import LEAST_LEFT, Window
from gateway.errors import Unsupported
from gateway.ports import Signatures, SigningCost
from vendors.gcp.sign_blob import SignBlob
from vendors.gcp.v4 import Algorithm, Place, new_form

# Google turns the keys that it keeps, and promises no more for what they have signed.
LONGEST: Final = timedelta(hours=12)


class BlobSigner:
    """Each signature is a call, and differs with the key that Google has at the time."""

    cost = SigningCost.CALL
    has_sessions = False

    def __init__(self, *, blobs: SignBlob, place: Place) -> None:
        self._blobs = blobs
        self._place = place

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        # They would be over before the window is, for whoever asks late in it.
        if window.end + LEAST_LEFT > window.start + LONGEST:
            raise Unsupported(
                "Google signs for 12 hours at most, and the gateway's URLs are to live far longer"
            )
        form = new_form(
            self._place,
            table,
            window,
            algorithm=Algorithm.RSA,
            signer=self._blobs.account.email,
            longest=LONGEST,
        )
        split = paths.split()
        # A file that is named twice is signed once.
        distinct = list(dict.fromkeys(split))
        messages = await asyncio.to_thread(form.messages, distinct)
        signed = dict(zip(distinct, await self._blobs.sign(messages), strict=True))
        return form.filled(signed[path] for path in split)
