"""How often a recipient may ask."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from gateway.domain.rate import Rate


class RateBuckets(Protocol):
    """A bucket of tokens for each recipient."""

    def take(self, principal: str, rate: Rate) -> timedelta | None:
        """Take one token; return the time until there is one when there is none."""
