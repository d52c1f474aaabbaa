"""A vendor that keeps what it opened and closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from gateway.domain.credential import Credential, GcpOauthToken
from gateway.domain.location import Location
from gateway.domain.window import EPOCH
from gateway.ports import OptionFault, Storage, StorageSettings
from tests.fakes.issuer import FakeIssuer
from tests.fakes.signer import FakeSigner


class FakeVendor:
    """Takes the options ``region`` and ``file``; fails to open or to close where an option says so."""

    def __init__(self, *schemes: str, unsigned: str = "") -> None:
        self.schemes = frozenset(schemes)
        # Why it signs no URLs.
        self._unsigned = unsigned
        self.opened: list[StorageSettings] = []
        self.closed: list[str] = []
        # Nothing is opened while this is clear.
        self.gate = asyncio.Event()
        self.gate.set()

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        known = {"region", "fails", "file"}
        return [
            OptionFault(path=(name,), message="unknown option", suggestion="region")
            for name in options
            if name not in known
        ]

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return [OptionFault(path=("file",), message="cannot be read")] if "file" in options else []

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        return ["credentials live two hours at most"] if life > timedelta(hours=2) else []

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return [f"no credential for {location.path}"] if "refused" in location.path else []

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return [self._unsigned] if self._unsigned else []

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
