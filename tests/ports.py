"""The range of ports that this test process may use; concurrent processes get disjoint ranges."""

from __future__ import annotations

import os


def _range_of(worker: str, workers: int, first: int, last: int) -> tuple[int, int]:
    """Return the part of a range that belongs to one of pytest-xdist's workers, or all of it without any."""
    if not worker:
        return first, last
    size = (last - first + 1) // workers
    start = first + size * int(worker.removeprefix("gw"))
    return start, start + size - 1


# The kernel assigns ephemeral ports from 32768 on, and some servers also listen 10,000 above their own port.
# By default, a range that no lane of deploy/dev/lanes.py uses: a test can run beside them.
FIRST_PORT, LAST_PORT = _range_of(
    os.environ.get("PYTEST_XDIST_WORKER", ""),
    int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    *map(int, os.environ.get("TEST_PORTS", "10000-10999").split("-")),
)
