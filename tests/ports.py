"""Which ports tests may take, apart from those of another run beside this one."""

from __future__ import annotations

import os

# The kernel hands out ports from 32768 on, and some servers also listen 10,000 above the port they are given.
FIRST_PORT, LAST_PORT = map(int, os.environ.get("TEST_PORTS", "10000-22767").split("-"))
