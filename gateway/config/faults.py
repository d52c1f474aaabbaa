"""Faults of a configuration: where, what was found, what is allowed, and what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing to put right. Holds no secret: neither ``found`` nor ``message`` quotes one."""

    # As in the file, ``recipients[0].tokens[1].hash``, or the name of an environment variable.
    path: str
    # What is wrong or what is allowed, in words that stand after the path.
    message: str
    # What stands there, as far as it may be shown.
    found: str = ""
    # In the file, from 1; None for what does not stand in the file.
    line: int | None = None
    # The nearest right key or value.
    suggestion: str = ""

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        path = f"{self.path}: " if self.path else ""
        found = f" (found {self.found})" if self.found else ""
        meant = f"; did you mean {self.suggestion}?" if self.suggestion else ""
        return f"{where}{path}{self.message}{found}{meant}"


class ConfigError(Exception):
    """A configuration that cannot be used, with every fault that it has."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(self.faults)

    def __str__(self) -> str:
        lines = [str(fault) for fault in self.faults[:_MOST_SHOWN]]
        if len(self.faults) > _MOST_SHOWN:
            lines.append(f"… and {len(self.faults) - _MOST_SHOWN:,} more")
        return "\n".join(lines)
