"""The objects of a class that a test creates, without those that earlier tests left in cycles."""

from __future__ import annotations

import gc
from typing import Generic, TypeVar

Found = TypeVar("Found")


class NewObjects(Generic[Found]):
    def __init__(self, kind: type[Found]) -> None:
        gc.collect()
        self._kind = kind
        # References, not ids: the id of a freed object may be given to a new one.
        self._old = self._all()

    def find(self) -> list[Found]:
        """Return the objects of the class that exist now and did not exist at the start."""
        old = set(map(id, self._old))
        return [each for each in self._all() if id(each) not in old]

    def _all(self) -> list[Found]:
        return [each for each in gc.get_objects() if isinstance(each, self._kind)]
