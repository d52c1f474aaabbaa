"""The faults of a configuration, below the name of its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gateway.config.faults import Fault


def list_faults(file: Path, faults: Sequence[Fault]) -> Iterator[str]:
    """Return the heading and every fault, line by line."""
    yield f"{file} has {len(faults):,} fault{'' if len(faults) == 1 else 's'}:"
    for fault in faults:
        yield f"  {fault}"
