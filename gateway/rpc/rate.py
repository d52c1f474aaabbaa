"""Buckets of tokens in the memory of one process."""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta
from typing import Final

from gateway.domain.rate import Bucket, Rate, take
from gateway.ports import Clock

_CAPACITY: Final = 10_000


class LocalBuckets:
    """The port ``RateBuckets``. The least recently used is forgotten first: forgotten, it is a full one."""

    def __init__(self, clock: Clock, *, capacity: int = _CAPACITY) -> None:
        self._clock = clock
        self._capacity = capacity
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, principal: str, rate: Rate) -> timedelta | None:
        bucket, wait = take(self._buckets.get(principal), rate, self._clock().timestamp())
        self._buckets[principal] = bucket
        self._buckets.move_to_end(principal)
        if len(self._buckets) > self._capacity:
            self._buckets.popitem(last=False)
        return wait
