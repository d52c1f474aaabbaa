"""A shared cache in memory, with a clock in hand, that fails when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from gateway.adapters.cache.shared import Claim, ClaimState, Lease


class FakeSharedCache:
    """Keeps what was published. While ``is_out`` it answers nothing, while ``is_full`` it takes nothing."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.is_out = False
        self.is_full = False
        self.values: dict[str, tuple[bytes, datetime]] = {}
        self.leases: dict[str, tuple[bytes, datetime]] = {}
        self.lists: dict[str, dict[str, datetime]] = {}
        self.claims: list[str] = []
        self._clock = clock

    async def find(self, names: Sequence[str]) -> Sequence[bytes | None] | None:
        return None if self.is_out else [self._get(self.values, name) for name in names]

    async def put(self, name: str, value: bytes, life: timedelta) -> bool:
        if self.is_out or self.is_full:
            return False
        self.values[name] = value, self._clock() + life
        return True

    async def claim(self, lease: Lease, life: timedelta) -> Claim:
        if self.is_out:
            return Claim(ClaimState.OUT)
        self.claims.append(lease.name)
        value = self._get(self.values, lease.name)
        if value is not None and value != lease.seen:
            return Claim(ClaimState.FOUND, value)
        if self._get(self.leases, lease.name) is not None:
            return Claim(ClaimState.TAKEN)
        if self.is_full:
            return Claim(ClaimState.OUT)
        self.leases[lease.name] = lease.token, self._clock() + life
        return Claim(ClaimState.MINE)

    async def renew(self, lease: Lease, life: timedelta) -> None:
        if not self.is_out and self._get(self.leases, lease.name) == lease.token:
            self.leases[lease.name] = lease.token, self._clock() + life

    async def publish(self, lease: Lease, value: bytes, life: timedelta) -> bool:
        if self.is_out:
            return False
        is_mine = self._get(self.leases, lease.name) == lease.token
        if is_mine:
            del self.leases[lease.name]
        present = self._get(self.values, lease.name)
        if not is_mine and present is not None and present != lease.seen:
            return False
        return await self.put(lease.name, value, life)

    async def release(self, lease: Lease) -> None:
        if not self.is_out and self._get(self.leases, lease.name) == lease.token:
            del self.leases[lease.name]

    async def enlist(self, index: str, name: str, life: timedelta) -> None:
        if not self.is_out:
            self.lists.setdefault(index, {})[name] = self._clock() + life

    async def drop(self, index: str) -> int | None:
        if self.is_out:
            return None
        names = [name for name, until in self.lists.pop(index, {}).items() if until > self._clock()]
        for name in names:
            self.values.pop(name, None)
            self.leases.pop(name, None)
        return len(names)

    def _get(self, content: dict[str, tuple[bytes, datetime]], name: str) -> bytes | None:
        value, until = content.get(name, (None, None))
        return value if until is not None and self._clock() < until else None
