"""The other end of an engine: runs commands as they come in, and says what each took; plain Python only."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path


def serve(commands: Mapping[str, Callable[..., int]]) -> None:
    """Run commands until there are no more; each returns how many files it saw."""
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        cpu, wall = time.process_time(), time.perf_counter()
        files = commands[name](*arguments)
        taken = {
            "cpu": time.process_time() - cpu,
            "wall": time.perf_counter() - wall,
            "files": files,
            "peak": peak_memory("self"),
        }
        print(json.dumps(taken), flush=True)


def peak_memory(process: int | str) -> int:
    """Return the most memory that a program has had; 0 where the system does not tell."""
    # Not what getrusage says: there a program inherits the peak of whoever started it.
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
