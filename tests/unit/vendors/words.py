"""Faults of options as they are read."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.ports import OptionFault


def told(faults: Iterable[OptionFault]) -> list[str]:
    """Return each fault as its path and its words."""
    return [_line(fault) for fault in faults]


def _line(fault: OptionFault) -> str:
    path = ".".join(str(step) for step in fault.path)
    meant = f"; did you mean {fault.suggestion}?" if fault.suggestion else ""
    return f"{path}: {fault.message}{meant}"
