"""Values of a label, kept to a number."""

from __future__ import annotations

from typing import Final

# What stands for every value that is not known beforehand.
OTHER: Final = "other"


class BoundedValues:
    """Admits values up to a number; later ones share one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def admit(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(value)
        return value
