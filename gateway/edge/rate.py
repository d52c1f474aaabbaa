"""A token bucket for each recipient."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gateway.edge.settings import Rate
from gateway.errors import Throttled
from gateway.ports import Clock

_CAPACITY: Final = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class RateLimiter:
    """Takes a token of a recipient's bucket for each request.

    Who is asking is known for certain only when the catalog has answered. A bearer token's recipient is
    remembered from there, so that later requests over the rate cost the services nothing.
    """

    def __init__(self, rate_of: Callable[[str], Rate], clock: Clock, *, capacity: int = _CAPACITY) -> None:
        self._rate_of = rate_of
        self._clock = clock
        self._capacity = capacity
        # Both are bounded, the least recently used first out: a forgotten bucket is a full one.
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._principals: OrderedDict[bytes, str] = OrderedDict()

    def admit(self, presented: bytes) -> str | None:
        """Take a token of the recipient that presented this before, and return its name; None: it is new."""
        principal = self._principals.get(presented)
        if principal is not None:
            self._principals.move_to_end(presented)
            self.take(principal)
        return principal

    def learn(self, presented: bytes, principal: str, *, charged: str | None) -> None:
        """Remember whose this is; take a token unless this recipient was charged at admission."""
        if principal == charged:
            return
        self._principals[presented] = principal
        self._principals.move_to_end(presented)
        _trim(self._principals, self._capacity)
        self.take(principal)

    def take(self, principal: str) -> None:
        """Take one token, or raise ``Throttled`` with the time until there is one."""
        rate, now = self._rate_of(principal), self._clock().timestamp()
        bucket = self._buckets.get(principal)
        if bucket is None:
            bucket = self._buckets[principal] = _Bucket(rate.burst, now)
            _trim(self._buckets, self._capacity)
        self._buckets.move_to_end(principal)
        # A clock that was set back must not empty the bucket.
        elapsed = max(now - bucket.filled_at, 0.0)
        bucket.tokens = min(bucket.tokens + elapsed * rate.requests_per_second, rate.burst)
        bucket.filled_at = now
        if bucket.tokens < 1:
            wait = timedelta(seconds=(1 - bucket.tokens) / rate.requests_per_second)
            raise Throttled("too many requests; wait as long as Retry-After says", retry_after=wait)
        bucket.tokens -= 1

    def __len__(self) -> int:
        return max(len(self._buckets), len(self._principals))


def _trim(entries: OrderedDict[str, _Bucket] | OrderedDict[bytes, str], capacity: int) -> None:
    while len(entries) > capacity:
        entries.popitem(last=False)
