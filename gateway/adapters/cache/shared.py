"""What the cache needs of a store that replicas share: bytes by name, and leases on names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from typing import Protocol


class ClaimState(Enum):
    # There is a value.
    FOUND = auto()
    # There is none, and to make it is now the caller's lease.
    MINE = auto()
    # There is none, and another has the lease.
    TAKEN = auto()
    # The store does not answer: do without.
    OUT = auto()


@dataclass(frozen=True, slots=True)
class Claim:
    state: ClaimState
    value: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A claim to make the value of a name."""

    name: str
    # Nobody else has it.
    token: bytes
    # The value that is there and of no use: it counts as none.
    seen: bytes = field(default=b"", repr=False)


class SharedCache(Protocol):
    """Never raises: what fails is a miss, and counted where it failed."""

    async def find(self, names: Sequence[str]) -> Sequence[bytes | None] | None:
        """Return the values of the names, in order, or None when the store does not answer."""

    async def put(self, name: str, value: bytes, life: timedelta) -> bool: ...

    async def claim(self, lease: Lease, life: timedelta) -> Claim:
        """Return the value, or take the lease for a time, in one step."""

    async def renew(self, lease: Lease, life: timedelta) -> None:
        """Hold a lease for longer, unless it is lost."""

    async def publish(self, lease: Lease, value: bytes, life: timedelta) -> bool:
        """Store a value and end the lease; when that is lost, only where there is no value yet."""

    async def release(self, lease: Lease) -> None: ...

    async def enlist(self, index: str, name: str, life: timedelta) -> None:
        """Put a name on a list for as long as its value lives."""

    async def drop(self, index: str) -> int | None:
        """Remove the values and leases of a list; return how many, or None when that failed."""
