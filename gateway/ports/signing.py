"""How URLs are signed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

from gateway.domain.credential import Credential
from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Signatures:
    """Columns from which URLs are spliced: origin, path, ``?``, query, signature."""

    origin: str
    query: str = field(repr=False)
    # One for each path, joined by newlines: JSON-safe and URL-safe as they are.
    signatures: bytes = field(repr=False)
    expires_at: datetime

    def __len__(self) -> int:
        return self.signatures.count(b"\n") + 1 if self.signatures else 0


class SigningCost(Enum):
    """What a signature takes, and so how far it is worth being remembered."""

    # A hash: about what it costs to find it again.
    HASH = auto()
    # An operation with a private key: hundreds of hashes.
    PRIVATE_KEY = auto()
    # A call of the provider's: one replica makes it for all.
    CALL = auto()


class Signer(Protocol):
    cost: SigningCost
    # Whether it signs with something that is made for a window itself. Then all that it signs for turns at
    # once, so that within a window nothing is signed with two of them.
    has_sessions: bool

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        """Return a signature for each path below the table, in order, for reading only.

        They are the same bytes whenever, and in whichever replica, they are asked for within the window; they
        expire with it, or with what they were signed with if that ends before.
        """


class Sessions(Protocol):
    """What the replicas of a storage's signer sign with in a window, which is one and the same."""

    async def obtain(self, window: Window, mint: Callable[[], Awaitable[Credential]]) -> Credential:
        """Return what was minted for the window, by whichever replica; mint it where none has."""
