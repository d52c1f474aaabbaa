"""A process that tries to take tokens from shared buckets, and prints how many it got."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from gateway.adapters.shared_rate import SharedBuckets
from gateway.domain.rate import Rate


def main(memory: int, principal: str, rate: Rate, attempts: int) -> int:
    buckets = SharedBuckets(memory, lambda: datetime.now(UTC))
    # All begin when they are told to, however long each took to start.
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    return sum(buckets.take(principal, rate) is None for _ in range(attempts))


if __name__ == "__main__":
    memory, principal, per_second, burst, attempts = sys.argv[1:]
    limits = Rate(requests_per_second=float(per_second), burst=int(burst))
    sys.stdout.write(f"{main(int(memory), principal, limits, int(attempts))}\n")
