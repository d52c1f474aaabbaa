"""Holds each recipient to its rate."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gateway.domain.rate import Rate
from gateway.errors import Throttled
from gateway.ports import RateBuckets

_CAPACITY: Final = 10_000


class RateLimiter:
    """Takes a token of a recipient's bucket for each request.

    Who is asking is known for certain only when the catalog has answered. A bearer token's recipient is
    remembered from there, so that later requests over the rate cost the services nothing.
    """

    def __init__(
        self, rate_of: Callable[[str], Rate], buckets: RateBuckets, *, capacity: int = _CAPACITY
    ) -> None:
        self._rate_of = rate_of
        self._buckets = buckets
        self._capacity = capacity
        self._principals: OrderedDict[bytes, str] = OrderedDict()

    def find(self, presented: bytes) -> str | None:
        """Return the recipient that presented this before; None: it is new."""
        principal = self._principals.get(presented)
        if principal is not None:
            self._principals.move_to_end(presented)
        return principal

    def forget(self, presented: bytes) -> None:
        """Charge nobody for this any more: whoever presents it is not known."""
        self._principals.pop(presented, None)

    def learn(self, presented: bytes, principal: str, *, charged: str | None) -> None:
        """Remember whose this is; take a token unless this recipient was charged at admission."""
        if principal == charged:
            return
        self._principals[presented] = principal
        self._principals.move_to_end(presented)
        if len(self._principals) > self._capacity:
            self._principals.popitem(last=False)
        self.take(principal)

    def take(self, principal: str) -> None:
        """Take one token, or raise ``Throttled`` with the time until there is one."""
        wait = self._buckets.take(principal, self._rate_of(principal))
        if wait is not None:
            raise Throttled("too many requests; wait as long as Retry-After says", retry_after=wait)

    def __len__(self) -> int:
        return len(self._principals)
