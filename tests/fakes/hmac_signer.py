"""A signer whose URLs can be verified by what stands in them, whoever kept them meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.ports import Sessions, Signatures, SigningCost

SECRET = b"the secret of the store"


class HmacSigner:
    """Keeps what it was asked for. With sessions, it signs with what is minted for the window."""

    def __init__(
        self,
        cost: SigningCost = SigningCost.HASH,
        *,
        sessions: Sessions | None = None,
        secret: bytes = SECRET,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.cost = cost
        self.has_sessions = sessions is not None
        self.calls: list[tuple[Location, Paths, Window]] = []
        self.minted: list[Credential] = []
        self.failure: Exception | None = None
        # When what it signs with ends; None: not before its window.
        self.ends_at: datetime | None = None
        # How long a session lives; None: as long as its window asks for.
        self.session_life: timedelta | None = None
        self.seconds = 0.0
        self.gate = asyncio.Event()
        self.gate.set()
        self._sessions = sessions
        self._secret = secret
        self._clock = clock

    @property
    def signed(self) -> list[bytes]:
        """Return each path as often as it was signed."""
        return [path for _, paths, _ in self.calls for path in paths.split()]

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        self.calls.append((table, paths, window))
        await self._wait()
        session, ends_at = "", self.ends_at or window.expires_at
        if self._sessions is not None:
            credential = await self._sessions.obtain(window, lambda: self.mint(window))
            session, ends_at = credential.id, credential.expires_at
        expires_at = min(window.expires_at, ends_at)
        query = f"start={_seconds(window.start)}&end={_seconds(expires_at)}&session={session}&sig="
        origin = f"https://{table.authority}.store.example/{table.path}/"
        signatures = (self._mac(f"{origin}{path.decode()}?{query}") for path in paths.split())
        return Signatures(
            origin=origin, query=query, signatures="\n".join(signatures).encode(), expires_at=expires_at
        )

    async def mint(self, window: Window) -> Credential:
        await self._wait()
        ends_at = window.expires_at
        if self.session_life is not None:
            ends_at = self._clock() + self.session_life
        # Each is another, as a provider's are.
        name = secrets.token_hex(10)
        keys = AwsTempCredentials(access_key_id=name, secret_access_key=f"very-{name}", session_token="")
        self.minted.append(Credential(id=name, secret=keys, expires_at=ends_at))
        return self.minted[-1]

    async def _wait(self) -> None:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    def _mac(self, url: str) -> str:
        return hmac.new(self._secret, url.encode(), hashlib.sha256).hexdigest()


def urls_of(paths: Paths, signatures: Signatures) -> list[str]:
    """Return the URLs as they are spliced for a recipient."""
    pairs = zip(paths.split(), signatures.signatures.split(b"\n"), strict=True)
    return [f"{signatures.origin}{path.decode()}?{signatures.query}{sig.decode()}" for path, sig in pairs]


def is_genuine(url: str, now: datetime, secret: bytes = SECRET) -> bool:
    """Tell whether the store would serve a URL, by what stands in it alone."""
    head, _, signature = url.rpartition("sig=")
    expected = hmac.new(secret, f"{head}sig=".encode(), hashlib.sha256).hexdigest()
    end = int(parse_qs(urlsplit(url).query)["end"][0])
    return hmac.compare_digest(expected, signature) and now.timestamp() < end


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
