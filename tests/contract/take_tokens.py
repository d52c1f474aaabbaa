"""A process that takes tokens from shared buckets for a while and tells how many it got."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from gateway.adapters.shared_rate import SharedBuckets
from gateway.domain.rate import Rate


def main(memory: int, principal: str, rate: Rate, seconds: float) -> int:
    buckets = SharedBuckets(memory, lambda: datetime.now(UTC))
    # All begin when they are told to, however long each took to start.
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    taken, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        taken += buckets.take(principal, rate) is None
    return taken


if __name__ == "__main__":
    memory, principal, per_second, burst, seconds = sys.argv[1:]
    limits = Rate(requests_per_second=float(per_second), burst=int(burst))
    sys.stdout.write(f"{main(int(memory), principal, limits, float(seconds))}\n")
