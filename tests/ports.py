"""Ports for the servers of this test process; concurrent processes get disjoint ranges."""

from __future__ import annotations

import os
import secrets
import socket
from collections import deque


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
# A server binds its port some time after the port was given. Half of the range stays available.
_given: deque[int] = deque(maxlen=(LAST_PORT - FIRST_PORT + 1) // 2)


def free_port() -> int:
    """Return a port without a listener that was not assigned lately."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int, *, also: int = 0) -> list[int]:
    """Return ports without listeners that were not assigned lately, nor those ``also`` above them."""
    found: list[int] = []
    for _ in range(1000):
        port = FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT + 1)
        wanted = {port, port + also}
        if wanted.isdisjoint(_given) and all(map(_is_free, wanted)):
            _given.extend(wanted)
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"no {count} free ports from {FIRST_PORT} to {LAST_PORT}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
