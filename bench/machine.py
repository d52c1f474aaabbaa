"""The machine that a benchmark ran on, in words for its results."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path


def describe_machine() -> str:
    return (
        f"{os.cpu_count()} cores ({_processor()}), {_memory_gb():.0f} GB of memory, "
        f"Python {platform.python_version()} on {sys.platform}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
