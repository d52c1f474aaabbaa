"""A store for shipped segments that fails, stalls and lies as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from gateway.adapters.audit_shipping import ShippingFailure
from gateway.errors import Unavailable
from gateway.ports import StateEntry, StateKey


class Mishap(Enum):
    # Nothing is put, and that is said.
    REFUSED = auto()
    # It is put, and the answer is lost.
    ANSWER_LOST = auto()
    # Nothing is put, and the answer says that it was.
    LIES = auto()
    # Nothing is put, and the answer says that something is there.
    SAYS_TAKEN = auto()
    # It does not answer for as long as anybody waits.
    STALLS = auto()
    # It is put, and then it does not answer.
    PUTS_AND_STALLS = auto()
    # It raises what no store should.
    BREAKS = auto()
    # It never answers; who calls must have patience of its own.
    HANGS = auto()


@dataclass(eq=False)
class FakeLanding:
    """Takes one mishap for each call of ``create`` and ``get``, in turn; afterwards all is well."""

    kept: dict[str, bytes] = field(default_factory=dict)
    mishaps: list[Mishap | None] = field(default_factory=list)
    creates: list[str] = field(default_factory=list)

    async def create(self, key: str, content: bytes) -> str | None:
        self.creates.append(key)
        mishap = self._next()
        puts = mishap in (None, Mishap.ANSWER_LOST, Mishap.PUTS_AND_STALLS)
        was_there = key in self.kept
        if puts and not was_there:
            self.kept[key] = content
        if mishap is Mishap.BREAKS:
            raise RuntimeError("secret words of an SDK")
        if mishap is Mishap.HANGS:
            await asyncio.Event().wait()
        if mishap in (Mishap.STALLS, Mishap.PUTS_AND_STALLS):
            raise TimeoutError
        if mishap in (Mishap.REFUSED, Mishap.ANSWER_LOST):
            raise Unavailable("the store does not answer")
        return None if was_there or mishap is Mishap.SAYS_TAKEN else "tag"

    async def get(self, key: str) -> StateEntry | None:
        if self._next() is Mishap.REFUSED:
            raise Unavailable("the store does not answer")
        content = self.kept.get(key)
        return None if content is None else StateEntry(content=content, tag="tag")

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        content = self.kept.get(key)
        return None if content is None else content[start : start + length]

    async def replace(self, key: str, content: bytes, tag: str) -> str | None:
        raise AssertionError("a segment is never replaced")

    async def delete(self, key: str) -> None:
        raise AssertionError("a segment is never deleted")

    async def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> Sequence[StateKey]:
        now = datetime.now(UTC)
        return [StateKey(key=key, size=len(kept), modified_at=now) for key, kept in sorted(self.kept.items())]

    def _next(self) -> Mishap | None:
        return self.mishaps.pop(0) if self.mishaps else None


@dataclass(eq=False)
class FakeShippingMetrics:
    segments: int = 0
    size: int = 0
    failures: list[ShippingFailure] = field(default_factory=list)
    backlog: tuple[int, timedelta] = (0, timedelta(0))

    def count_shipped(self, size: int) -> None:
        self.segments += 1
        self.size += size

    def count_shipping_failure(self, failure: ShippingFailure) -> None:
        self.failures.append(failure)

    def set_shipping_backlog(self, size: int, age: timedelta) -> None:
        self.backlog = size, age
