from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar

from gateway.domain.state_key import check_state_key, check_state_prefix
from gateway.errors import Unavailable
from gateway.ports import Clock, StateEntry, StateKey, utcnow

T = TypeVar("T")

# Called with the method's name and the key, before the store acts or after it has: it may wait, or raise.
Fault = Callable[[str, str], Awaitable[None]]


async def _no_fault(method: str, key: str) -> None:
    pass


class FakeStateStore:
    """Keeps state in memory; ``before`` and ``after`` are where its network fails."""

    def __init__(self, *, clock: Clock = utcnow) -> None:
        self.entries: dict[str, tuple[bytes, datetime]] = {}
        self.before: Fault = _no_fault
        self.after: Fault = _no_fault
        self.calls: list[tuple[str, str]] = []
        self._clock = clock

    def fail_next(self, *methods: str) -> None:
        """Let the next call of each of the methods fail before the store has done anything."""
        self.before = _once(methods)

    def lose_next_answer(self, *methods: str) -> None:
        """Let the next call of each of the methods fail after the store has done what was asked."""
        self.after = _once(methods)

    def delay(self, seconds: float) -> None:
        async def wait(method: str, key: str) -> None:
            await asyncio.sleep(seconds)

        self.before = wait

    async def get(self, key: str) -> StateEntry | None:
        content = await self._call("get", check_state_key(key), lambda: self._content(key))
        return None if content is None else StateEntry(content=content, tag=_tag(content))

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        content = await self._call("get_range", check_state_key(key), lambda: self._content(key))
        return None if content is None else content[start : start + max(length, 0)]

    async def create(self, key: str, content: bytes) -> str | None:
        return await self._call("create", check_state_key(key), lambda: self._put(key, content, None))

    async def replace(self, key: str, content: bytes, tag: str) -> str | None:
        return await self._call("replace", check_state_key(key), lambda: self._put(key, content, tag))

    async def delete(self, key: str) -> None:
        await self._call("delete", check_state_key(key), lambda: self.entries.pop(key, None))

    async def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> Sequence[StateKey]:
        return await self._call("list", check_state_prefix(prefix), lambda: self._list(prefix, after, limit))

    def _content(self, key: str) -> bytes | None:
        return self.entries[key][0] if key in self.entries else None

    def _put(self, key: str, content: bytes, tag: str | None) -> str | None:
        current = self._content(key)
        if (None if current is None else _tag(current)) != tag:
            return None
        self.entries[key] = content, self._clock()
        return _tag(content)

    def _list(self, prefix: str, after: str, limit: int) -> Sequence[StateKey]:
        keys = sorted(key for key in self.entries if key.startswith(prefix) and key > after)
        return [
            StateKey(key=key, size=len(self.entries[key][0]), modified_at=self.entries[key][1])
            for key in keys[:limit]
        ]

    async def _call(self, method: str, key: str, act: Callable[[], T]) -> T:
        self.calls.append((method, key))
        await self.before(method, key)
        # As over a network: others come in between.
        await asyncio.sleep(0)
        result = act()
        await self.after(method, key)
        return result


def _once(methods: Sequence[str]) -> Fault:
    left = list(methods)

    async def fail(method: str, key: str) -> None:
        if method in left:
            left.remove(method)
            raise Unavailable("the state cannot be read or written at the moment; try again later")

    return fail


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
