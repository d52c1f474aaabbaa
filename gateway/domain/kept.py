"""What is kept for the next time it is asked for, as much as fits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """Bounded by bytes; what was used longest ago goes first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        # With the bytes that each takes, which are not always free to find out.
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.size = 0

    def find(self, key: Key) -> Value | None:
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep a value in place of the one before it; one that can never fit is not kept."""
        self._drop(key)
        if size > self.capacity:
            return
        self._values[key] = value, size
        self.size += size
        while self.size > self.capacity:
            self._drop(next(iter(self._values)))

    def _drop(self, key: Key) -> None:
        _, size = self._values.pop(key, (None, 0))
        self.size -= size
