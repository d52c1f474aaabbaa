"""A vendor that keeps what it opened and closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from gateway.domain.credential import Credential, GcpOauthToken
from gateway.domain.location import Location
from gateway.domain.window import EPOCH
from gateway.ports import Storage, StorageSettings
from tests.fakes.issuer import FakeIssuer
from tests.fakes.signer import FakeSigner


class FakeVendor:
    """Takes the option ``region``; fails to open or to close where an option says so."""

    def __init__(self, *schemes: str) -> None:
        self.schemes = frozenset(schemes)
        self.opened: list[StorageSettings] = []
        self.closed: list[str] = []
        # Nothing is opened while this is clear.
        self.gate = asyncio.Event()
        self.gate.set()

    def check(self, options: Mapping[str, object]) -> Sequence[str]:
        return [f"unknown option {name!r}" for name in options if name not in {"region", "fails"}]

    def check_dir(self, options: Mapping[str, object], location: Location, life: timedelta) -> Sequence[str]:
        return [f"no credential for {location.path}"] if "refused" in location.path else []

    @asynccontextmanager
    async def open(self, settings: StorageSettings) -> AsyncIterator[Storage]:
        if settings.options.get("fails") == "open":
            raise OSError("no route to store")
        self.opened.append(settings)
        await self.gate.wait()
        issuer = FakeIssuer(Credential(id="c-1", secret=GcpOauthToken(oauth_token="ya29"), expires_at=EPOCH))
        try:
            yield Storage(name=settings.name, prefix=settings.prefix, signer=FakeSigner(), issuer=issuer)
        finally:
            self.closed.append(settings.name)
        if settings.options.get("fails") == "close":
            raise OSError("connection reset")
