"""Says what ends sessions of an S3-compatible store that are out already."""

from __future__ import annotations

from datetime import datetime

from gateway.ports import Cut
from vendors.s3.profile import Capabilities


class S3Cutter:
    """Does nothing itself: no store here can end the sessions of one recipient."""

    everybody = ""
    consequence = ""

    def __init__(self, can: Capabilities) -> None:
        self._can = can

    async def cut_off(self, recipient: str, issued_before: datetime) -> Cut:
        return Cut(done=False, words=self._can.revocation)
