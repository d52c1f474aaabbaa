"""How many requests a recipient may make, and the bucket of tokens that says whether it may make one now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many requests a second a recipient may make for long, and at once."""

    requests_per_second: float
    burst: int


class Bucket(NamedTuple):
    """Tokens as of a moment, in seconds since the epoch; a request takes one, and time brings new ones."""

    tokens: float
    filled_at: float


def take(bucket: Bucket | None, rate: Rate, now: float) -> tuple[Bucket, timedelta | None]:
    """Return the bucket without a token, or the time until there is one; an unknown bucket is a full one."""
    if bucket is None:
        return Bucket(rate.burst - 1, now), None
    # A clock that was set back must not empty the bucket.
    elapsed = max(now - bucket.filled_at, 0.0)
    tokens = min(bucket.tokens + elapsed * rate.requests_per_second, rate.burst)
    if tokens < 1:
        return Bucket(tokens, now), timedelta(seconds=(1 - tokens) / rate.requests_per_second)
    return Bucket(tokens - 1, now), None
