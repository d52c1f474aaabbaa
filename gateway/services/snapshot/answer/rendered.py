"""Rendered pages that are kept: what costs most of an answer depends on no one who asks."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.ports import SnapshotMetrics
from gateway.v1.snapshot_pb2 import FilePage

# What was used this lately is not given up for something new. A table that is larger than the memory is read
# from its first page to its last, again and again: it would push out each page just before it is needed.
_LATELY: Final = 60.0
# Of Python's objects, and of each hole.
_PAGE_BYTES: Final = 1024
_HOLE_BYTES: Final = 5

Pages = Sequence[FilePage]


@dataclass(slots=True)
class _Held:
    pages: Pages = field(repr=False)
    size: int
    used_at: float


class RenderedPages:
    """Bounded by bytes, for any number of threads. Pages that were kept are shared, and never changed."""

    def __init__(
        self, capacity: int, metrics: SnapshotMetrics, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity = capacity
        self._metrics = metrics
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # What was used longest ago is first.
        self._held: OrderedDict[Hashable, _Held] = OrderedDict()
        self.size = 0

    def find(self, key: Hashable) -> Pages | None:
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                held.used_at = self._monotonic()
                self._held.move_to_end(key)
        self._metrics.count_segment(is_kept=held is not None)
        return None if held is None else held.pages

    def keep(self, key: Hashable, pages: Pages) -> None:
        """Keep pages if there is room, or something that has not been used for a while makes it."""
        size = sum(map(_size, pages))
        with self._lock:
            if key in self._held or not self._make_room(size):
                return
            self._held[key] = _Held(pages, size, self._monotonic())
            self.size += size
            self._metrics.set_lines(self.size)

    def _make_room(self, size: int) -> bool:
        unused = self._monotonic() - _LATELY
        while self._held and self.size + size > self._capacity:
            key, oldest = next(iter(self._held.items()))
            if oldest.used_at > unused:
                return False
            del self._held[key]
            self.size -= oldest.size
        return self.size + size <= self._capacity


def _size(page: FilePage) -> int:
    paths = sum(len(group.paths) for group in page.groups)
    return _PAGE_BYTES + len(page.lines) + paths + _HOLE_BYTES * len(page.holes)
